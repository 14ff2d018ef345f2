"""What hooks did in the runs of tasks, and what they were told of tasks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Query
from popagent_proto.chat.hooks import HookRunList


class ListTaskHookRuns(Query[HookRunList]):
    """The audit of one task, all its attempts; a page holds at most `limit` runs and about 800 kB."""

    subject: ClassVar = "popagent.task-runner.qry.hooks-runs.v1"

    task_id: Id
    turn_id: Id | None = Field(default=None, description="Only those of one attempt.")
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)
