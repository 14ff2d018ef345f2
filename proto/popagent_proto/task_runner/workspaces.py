"""Workspaces that are about to be deleted: no task is taken in them any more, and those that there are, are counted."""

from __future__ import annotations

from typing import ClassVar

from popagent_kit.ids import Id
from popagent_proto.base import Command
from popagent_proto.common import OpenedView, ReferencesView


class CloseToTasks(Command[ReferencesView]):
    """Take no new task in a workspace for a minute, and count those of any state that it has.

    A task that was being stored is waited for and counted. `closed_by` opens it again.
    """

    subject: ClassVar = "popagent.task-runner.cmd.workspaces-close.v1"

    workspace_id: Id
    closed_by: Id


class OpenToTasks(Command[OpenedView]):
    """Take new tasks again; without it the minute has to pass."""

    subject: ClassVar = "popagent.task-runner.cmd.workspaces-open.v1"

    workspace_id: Id
    closed_by: Id
