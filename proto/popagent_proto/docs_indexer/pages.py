"""Pages of documentation: Markdown in folders, per workspace, with every text that they had."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.errors import ConflictError, NotFoundError
from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, ListView, Moment, Query, Text, View, Wire

LONGEST_PAGE: Final = 1_000_000
# What is longer than a path may be is refused in words, by the rule that it breaks.
LONGEST_GIVEN_PATH: Final = 20_000
# Seconds. A page is found by its words once it is stored; a million characters take a moment on a busy machine.
INDEXED_WITHIN_S: Final = 17.0
# Of each page; older texts are dropped.
KEPT_VERSIONS: Final = 100
# Deleted pages can be brought back for so many days.
KEPT_DELETED_DAYS: Final = 30

PathText = Annotated[
    Text,
    Field(
        max_length=LONGEST_GIVEN_PATH,
        description="Relative, with slashes; a page ends in .md or .markdown. What breaks a rule is refused with it.",
    ),
]
Body = Annotated[Text, Field(max_length=LONGEST_PAGE, description="Markdown, at most 1,000,000 characters.")]
Revision = Annotated[
    str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the text in UTF-8, as it was read last.")
]

PageChange = Literal["created", "written", "moved", "restored", "imported"]


class PageSummary(View):
    """A page without its text."""

    id: Id
    workspace_id: Id
    path: str
    title: str = Field(description="Of the front matter, else the first heading of the first level, else the name.")
    revision: str = Field(description="SHA-256 of the text.")
    version: int = Field(ge=0, description="Rises with every change, a move included.")
    characters: int
    source_id: str | None = Field(default=None, description="What it was imported from.")
    created_at: Moment
    updated_at: Moment


class PageView(PageSummary):
    """A page."""

    body: str


class PageVersion(View):
    """A text that a page has or had."""

    version: int
    path: str = Field(description="Where the page was when it had this text, last.")
    revision: str
    characters: int
    written_at: Moment
    is_current: bool


class PageVersionView(PageVersion):
    """The same with its text."""

    body: str


class PageHistory(ListView):
    """The newest first; of each page the newest 100 are kept."""

    page: PageSummary
    items: list[PageVersion]


class DeletedPage(View):
    """A page that can be brought back: `version` is the text that it had last."""

    id: Id
    path: str
    title: str
    version: int
    characters: int
    deleted_at: Moment


class DeletedPages(ListView):
    """The newest first, for thirty days."""

    items: list[DeletedPage]


class PageDeletedView(View):
    """It is in the history for thirty days."""

    id: Id
    path: str


class PageNotFoundError(NotFoundError):
    """There is no such page."""


class PagePathTakenError(ConflictError):
    """There is something at this path, or at one that reads alike."""

    code = "page_path_taken"


class CreatePageBody(Wire):
    """A new page; folders that are missing are made."""

    path: PathText
    body: Body = ""


class WritePageBody(Wire):
    """Another text for a page."""

    path: PathText
    body: Body
    revision: Revision


class MoveBody(Wire):
    """Another place or name for a page or a folder; folders that are missing are made."""

    path: PathText
    to: PathText
    revision: Revision | None = Field(default=None, description="Of a page: refuse when it has another text by now.")


class RestoreBody(Wire):
    """A text of the history that shall be the page's again."""

    version: int = Field(ge=0, le=2**31 - 1)
    revision: Revision | None = Field(default=None, description="The current one; null when the page is deleted.")


class GetPage(Query[PageView]):
    """Read a page."""

    subject: ClassVar = "popagent.docs-indexer.qry.pages-get.v1"

    workspace_id: Id
    path: PathText


class CreatePage(Command[PageSummary]):
    """Store a page; the command's id is its own, so that a repeated command gives the stored one.

    409 `page_path_taken` with what is there.
    """

    subject: ClassVar = "popagent.docs-indexer.cmd.pages-create.v1"
    answer_within_s: ClassVar = INDEXED_WITHIN_S

    command_id: Id
    workspace_id: Id
    page: CreatePageBody


class WritePage(Command[PageSummary]):
    """Replace the text of a page; 409 with the stored `page` when the revision is old.

    A text that the page has already is no change, whatever the revision.
    """

    subject: ClassVar = "popagent.docs-indexer.cmd.pages-write.v1"
    answer_within_s: ClassVar = INDEXED_WITHIN_S

    workspace_id: Id
    page: WritePageBody


class DeletePage(Command[PageDeletedView]):
    """Delete a page; 409 with the stored `page` when the revision is old."""

    subject: ClassVar = "popagent.docs-indexer.cmd.pages-delete.v1"

    workspace_id: Id
    path: PathText
    revision: Revision


class ReadHistory(Query[PageHistory]):
    """The texts of a page, also of a deleted one."""

    subject: ClassVar = "popagent.docs-indexer.qry.pages-history.v1"

    workspace_id: Id
    page_id: Id
    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class GetPageVersion(Query[PageVersionView]):
    """One text of the history."""

    subject: ClassVar = "popagent.docs-indexer.qry.pages-version.v1"

    workspace_id: Id
    page_id: Id
    version: int = Field(ge=0, le=2**31 - 1)


class RestorePage(Command[PageSummary]):
    """Make a text of the history the page's text again, and the page itself when it was deleted."""

    subject: ClassVar = "popagent.docs-indexer.cmd.pages-restore.v1"
    answer_within_s: ClassVar = INDEXED_WITHIN_S

    workspace_id: Id
    page_id: Id
    asked: RestoreBody


class ListDeletedPages(Query[DeletedPages]):
    """Pages that can be brought back."""

    subject: ClassVar = "popagent.docs-indexer.qry.pages-deleted.v1"

    workspace_id: Id
    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class DocsPageChanged(Event):
    """A page was made, written, moved by itself or brought back."""

    subject: ClassVar = "popagent.docs-indexer.evt.pages-changed.v1"

    page: PageSummary
    change: PageChange
    previous_path: str | None = None


class DocsPageDeleted(Event):
    """A page is gone from its folder."""

    subject: ClassVar = "popagent.docs-indexer.evt.pages-deleted.v1"

    page_id: Id
    workspace_id: Id
    path: str
