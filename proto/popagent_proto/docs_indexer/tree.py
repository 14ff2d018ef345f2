"""The folders of a workspace's documentation, and what is done to whole folders."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.errors import ConflictError, NotFoundError
from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, ListView, Moment, Query, Text, View, Wire
from popagent_proto.common import OpenedView, ReferencesView
from popagent_proto.docs_indexer.pages import MoveBody, PathText, Revision

MOST_LISTED: Final = 5_000

FolderChange = Literal["made", "moved", "deleted", "imported"]


class TreeEntry(View):
    """A folder or a page; of a folder nothing but its path is known."""

    kind: Literal["folder", "page"]
    path: str
    characters: int | None = None
    updated_at: Moment | None = None


class DocsTree(ListView):
    """What lies in a workspace, or below a folder of it, by path."""

    items: list[TreeEntry]


class MovedView(View):
    """What was moved, and where it is now."""

    kind: Literal["folder", "page"]
    path: str
    pages: int = Field(description="How many pages have another path.")


class FolderView(View):
    """A folder."""

    path: str


class FolderDeletedView(View):
    """How much went with it; the pages can be brought back for thirty days."""

    path: str
    pages: int
    folders: int


class FolderNotFoundError(NotFoundError):
    """There is no such folder."""


class FolderInUseError(ConflictError):
    """There is something in this folder. `pages`, `folders` and `revision` beside the error tell what."""

    code = "folder_not_empty"


class FolderBody(Wire):
    """A new folder."""

    path: PathText


class ListDocs(Query[DocsTree]):
    """Folders and pages, at most 5,000 at a time or what fits in a message."""

    subject: ClassVar = "popagent.docs-indexer.qry.tree-list.v1"

    workspace_id: Id
    folder: PathText | None = None
    cursor: Text | None = Field(default=None, max_length=4_096)
    limit: int = Field(default=MOST_LISTED, ge=1, le=MOST_LISTED)


class MakeFolder(Command[FolderView]):
    """Make a folder and those above it; one that is there is no error."""

    subject: ClassVar = "popagent.docs-indexer.cmd.tree-make.v1"

    workspace_id: Id
    path: PathText


class MoveDocs(Command[MovedView]):
    """Move or rename a page, or a folder with all that is in it; 409 `page_path_taken` when something is there."""

    subject: ClassVar = "popagent.docs-indexer.cmd.tree-move.v1"

    workspace_id: Id
    move: MoveBody


class DeleteFolder(Command[FolderDeletedView]):
    """Delete an empty folder, or one whose content is still what `revision` stands for.

    409 `folder_not_empty` says what is in it and its revision; sent with that, the folder goes with all of it.
    """

    subject: ClassVar = "popagent.docs-indexer.cmd.tree-delete.v1"

    workspace_id: Id
    path: PathText
    revision: Revision | None = None


class CloseToDocs(Command[ReferencesView]):
    """Take no new documentation in a workspace for a minute, and count its folders and pages."""

    subject: ClassVar = "popagent.docs-indexer.cmd.workspaces-close.v1"

    workspace_id: Id
    closed_by: Id


class OpenToDocs(Command[OpenedView]):
    """Take new documentation again; without it the minute has to pass."""

    subject: ClassVar = "popagent.docs-indexer.cmd.workspaces-open.v1"

    workspace_id: Id
    closed_by: Id


class DocsTreeChanged(Event):
    """A folder was made, moved with all in it, or deleted with all in it, or pages were imported below it.

    The aggregate is the workspace.
    """

    subject: ClassVar = "popagent.docs-indexer.evt.tree-changed.v1"

    change: FolderChange
    path: str
    previous_path: str | None = None
