"""Workspaces: registered directories below the workspace root."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.common import JobView

WorkspaceName = Annotated[Line, Field(min_length=1, max_length=120)]


class WorkspaceView(View):
    """A registered repository; `path` is relative to the workspace root, never a path of the server."""

    id: Id
    name: str
    path: str
    is_default: bool
    created_at: Moment
    revision: int


class FolderState(View):
    """What lies at a path now."""

    is_repository: bool = Field(default=False, description="It is a Git checkout.")
    branch: str | None = Field(default=None, description="Of the checkout; null when it stands on no branch.")


class WorkspaceRow(WorkspaceView, FolderState):
    """A registration with the state of its folder."""

    exists: bool = Field(default=True, description="The folder can be opened.")


class WorkspaceList(ListView):
    """Workspaces by name, the default one first."""

    items: list[WorkspaceRow]
    root: str | None = Field(
        default=None, description="The workspace root as chat sees it, in a container the path inside; for people only."
    )


class ListWorkspaces(Query[WorkspaceList]):
    """At most 200 at a time."""

    subject: ClassVar = "popagent.chat.qry.workspaces-list.v1"

    cursor: str | None = None
    limit: int = Field(default=200, ge=1, le=200)


class WorkspaceCandidate(FolderState):
    """A directory that could be registered; `path` is relative to the workspace root."""

    path: str


class WorkspaceCandidates(ListView):
    """Repositories first, then by path; `complete` is false when there are more than are listed or looked at."""

    items: list[WorkspaceCandidate]
    complete: bool


class ListWorkspaceCandidates(Query[WorkspaceCandidates]):
    """Directories below the workspace root that are not registered; links and hidden folders are left out."""

    subject: ClassVar = "popagent.chat.qry.workspaces-candidates.v1"


class RegisterWorkspaceBody(Wire):
    """What a client sends to register a directory that already exists below the workspace root."""

    name: WorkspaceName
    path: Text = Field(min_length=1, max_length=1_024, description="Relative to the workspace root.")


class RegisterWorkspace(Command[WorkspaceView]):
    """Register a directory; again, also through a link, answers 409 with the stored registration."""

    subject: ClassVar = "popagent.chat.cmd.workspaces-register.v1"

    command_id: Id
    body: RegisterWorkspaceBody


class CloneWorkspaceBody(Wire):
    """A repository to clone into a new directory of the workspace root, and what the workspace is called."""

    url: Text = Field(
        min_length=1, max_length=2_000, description="https, ssh, git, or user@host:path, without a password or token."
    )
    name: WorkspaceName | None = Field(default=None, description="By default that of the directory.")
    directory: Text | None = Field(
        default=None, min_length=1, max_length=100, description="One plain name; by default the last part of the URL."
    )


class CloneWorkspace(Command[JobView]):
    """Begin to clone and then register; the workspace gets the command's id, and a replay answers the same job.

    409 when something is in that place, is registered as it, or another clone is on its way there.
    """

    subject: ClassVar = "popagent.chat.cmd.workspaces-clone.v1"

    command_id: Id
    body: CloneWorkspaceBody


class DeleteWorkspaceSessions(Command[JobView]):
    """Begin to delete for good every session, active and archived, that the workspace has at this moment.

    While such a job of the workspace is not over, the same one is answered. Its result: `deleted`, and `kept` with the
    sessions that kept running.
    """

    subject: ClassVar = "popagent.chat.cmd.workspaces-delete-sessions.v1"

    workspace_id: Id


class PatchWorkspaceBody(Wire):
    """Rename."""

    revision: int = Field(ge=0)
    name: WorkspaceName


class PatchWorkspace(Command[WorkspaceView]):
    """Rename a registration; its folder stays where it is. Refused with the stored one when the revision is old."""

    subject: ClassVar = "popagent.chat.cmd.workspaces-patch.v1"

    command_id: Id
    workspace_id: Id
    body: PatchWorkspaceBody


class DeleteWorkspace(Command[DeletedView]):
    """Forget a registration; its folder stays.

    409 for the default one, and while something refers to it: `sessions`, `tasks`, `schedules`, `documents` (pages
    and folders) and `messages` beside the error say how much. 503 while an owner of these cannot be asked.
    """

    subject: ClassVar = "popagent.chat.cmd.workspaces-delete.v1"
    answer_within_s: ClassVar = 10.0

    workspace_id: Id


class WorkspaceRegistered(Event):
    """A workspace can be chosen from now on."""

    subject: ClassVar = "popagent.chat.evt.workspaces-registered.v1"

    workspace: WorkspaceView


class WorkspaceChanged(Event):
    """A workspace has another name."""

    subject: ClassVar = "popagent.chat.evt.workspaces-changed.v1"

    workspace: WorkspaceView


class WorkspaceDeleted(Event):
    """A workspace cannot be chosen any more; its folder is where it was."""

    subject: ClassVar = "popagent.chat.evt.workspaces-deleted.v1"

    workspace_id: Id
