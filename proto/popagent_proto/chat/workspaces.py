"""Workspaces: registered directories below the workspace root."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire

WorkspaceName = Annotated[Line, Field(min_length=1, max_length=120)]


class WorkspaceView(View):
    """A registered repository; `path` is relative to the workspace root, never a path of the server."""

    id: Id
    name: str
    path: str
    is_default: bool
    created_at: Moment
    revision: int


class WorkspaceList(ListView):
    """Workspaces by name, the default one first."""

    items: list[WorkspaceView]


class ListWorkspaces(Query[WorkspaceList]):
    """At most 200 at a time."""

    subject: ClassVar = "popagent.chat.qry.workspaces-list.v1"

    cursor: str | None = None
    limit: int = Field(default=200, ge=1, le=200)


class RegisterWorkspaceBody(Wire):
    """What a client sends to register a directory that already exists below the workspace root."""

    name: WorkspaceName
    path: Text = Field(min_length=1, max_length=1_024, description="Relative to the workspace root.")


class RegisterWorkspace(Command[WorkspaceView]):
    """Register a directory; the same path again answers 409 with the stored registration."""

    subject: ClassVar = "popagent.chat.cmd.workspaces-register.v1"

    command_id: Id
    body: RegisterWorkspaceBody


class WorkspaceRegistered(Event):
    """A workspace can be chosen from now on."""

    subject: ClassVar = "popagent.chat.evt.workspaces-registered.v1"

    workspace: WorkspaceView
