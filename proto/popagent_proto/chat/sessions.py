"""Sessions: a chat as people see it. Its id is also the id of its thread of messages."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire, not_blank
from popagent_proto.common import JobView, TurnEnd

Title = Annotated[Line, Field(min_length=1, max_length=200)]
UiMessage = dict[str, Any]


# Every word must occur, somewhere and in any case, accents aside; words may be parts of longer ones.
SearchText = Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(not_blank)]
EXCERPT_CHARACTERS = 160


class SessionSummary(View):
    """A row of the list."""

    id: Id
    title: str
    title_locked: bool = Field(description="A person named it; later messages do not rename it.")
    workspace_id: Id
    archived_at: Moment | None
    revision: int = Field(description="Rises by rename, archive, shorten and switching the branch, not by a turn.")
    created_at: Moment
    updated_at: Moment
    running_turn_id: Id | None
    last_turn_state: TurnEnd | None = Field(
        default=None,
        description="How the newest turn ended; null while one runs, after shortening and switching the branch.",
    )


class SessionView(SessionSummary):
    """A session with the newest messages of its branch, oldest first (AI SDK UI messages)."""

    messages: list[UiMessage]
    previous_cursor: str | None = Field(description="Asks for the messages before these; null at the beginning.")
    next_cursor: str | None = Field(default=None, description="Asks for those after these; null at the branch's end.")


class MessageHit(View):
    """A message whose text holds every word of a search."""

    message_id: Id
    role: Literal["user", "assistant"]
    excerpt: str = Field(max_length=EXCERPT_CHARACTERS, description="Plain text around the first word that was found.")
    at: Moment


class SessionItem(SessionSummary):
    """A row of the list; of a search, with where it matched."""

    match: MessageHit | None = Field(
        default=None, description="The newest message that matches; null when the title does, and without a search."
    )


class SessionList(ListView):
    """Newest activity first."""

    items: list[SessionItem]


class ListSessions(Query[SessionList]):
    """At most 200 at a time."""

    subject: ClassVar = "popagent.chat.qry.sessions-list.v1"

    q: SearchText | None = Field(default=None, description="Words that the title or a message must hold, all of them.")
    archived: bool = False
    workspace_id: Id | None = None
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)


class GetSession(Query[SessionView]):
    """Messages are paged from the newest; a page holds at most `limit` and about 800 kB.

    At most one of `before`, `after` and `around` is given: ids of messages, of which the shown branch must hold the
    latter two. `around` is in the middle of its page.
    """

    subject: ClassVar = "popagent.chat.qry.sessions-get.v1"

    session_id: Id
    before: str | None = None
    limit: int = Field(default=100, ge=1, le=200)
    after: str | None = None
    around: str | None = None


class MessageHits(ListView):
    """Oldest first."""

    items: list[MessageHit]


class SearchMessages(Query[MessageHits]):
    """Search the shown branch of one session."""

    subject: ClassVar = "popagent.chat.qry.sessions-search.v1"

    session_id: Id
    q: SearchText
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)


class BranchPage(View):
    """A run of messages of a branch: the `count` messages that end with `last_id`."""

    last_id: Id
    count: int = Field(ge=1)


class SessionOutline(View):
    """A session and its shown branch in pages that are small enough to be asked for, oldest first."""

    session: SessionSummary
    workspace: str = Field(description="Its name.")
    agent: str = Field(description="The name of who answers.")
    pages: list[BranchPage]


class OutlineSession(Query[SessionOutline]):
    """What an export reads: the pages stay what they are, whatever happens to the session."""

    subject: ClassVar = "popagent.chat.qry.sessions-outline.v1"

    session_id: Id


class BranchMessages(View):
    """Oldest first (AI SDK UI messages)."""

    messages: list[UiMessage]


class ReadBranch(Query[BranchMessages]):
    """One page of an outline."""

    subject: ClassVar = "popagent.chat.qry.sessions-branch.v1"

    session_id: Id
    page: BranchPage


class CreateSessionBody(Wire):
    """Everything is optional: a new chat in the default workspace."""

    id: Id | None = None
    title: Title | None = None
    workspace_id: Id | None = None


class CreateSession(Command[SessionView]):
    """Create a session; an id that exists answers 409 with the stored session."""

    subject: ClassVar = "popagent.chat.cmd.sessions-create.v1"

    command_id: Id
    body: CreateSessionBody


class MessageRef(Wire):
    """A message named by its id; whatever else a client sends with it is the server's own and is dropped."""

    id: Id

    @model_validator(mode="before")
    @classmethod
    def _only_the_id(cls, value: Any) -> Any:
        return {"id": value.get("id")} if isinstance(value, dict) else value


class SaveSessionBody(Wire):
    """Rename, or shorten to a stored prefix; content is the server's and is never taken from a client."""

    revision: int = Field(ge=0)
    title: Title | None = None
    messages: list[MessageRef] | None = Field(
        default=None, max_length=10_000, description="The ids to keep, a prefix of the stored branch."
    )


class SaveSession(Command[SessionView]):
    """Refused with the stored session when the revision is old, or while a turn runs and messages are given."""

    subject: ClassVar = "popagent.chat.cmd.sessions-save.v1"

    command_id: Id
    session_id: Id
    body: SaveSessionBody


class PatchSessionBody(Wire):
    """Rename, archive or restore."""

    revision: int = Field(ge=0)
    title: Title | None = None
    archived: bool | None = None


class PatchSession(Command[SessionView]):
    """Archiving is refused while a turn runs."""

    subject: ClassVar = "popagent.chat.cmd.sessions-patch.v1"

    command_id: Id
    session_id: Id
    body: PatchSessionBody


class SetHeadBody(Wire):
    """Show the branch through this message, down to the newest message below it."""

    revision: int = Field(ge=0)
    message_id: Id


class SetHead(Command[SessionView]):
    """409 when the revision is old, or while a turn runs."""

    subject: ClassVar = "popagent.chat.cmd.sessions-head.v1"

    command_id: Id
    session_id: Id
    body: SetHeadBody


class DeletedView(View):
    """What was deleted."""

    id: Id
    deleted: bool = True


class SessionDeletedView(DeletedView):
    """A session that nobody sees any more; of a long one the messages go in the background."""

    job: JobView | None = Field(default=None, description="Deletes what it held; null when that is done.")


class DeleteSession(Command[SessionDeletedView]):
    """Stop what runs (up to 10 s), then delete thread, turns and session for good; else 409."""

    subject: ClassVar = "popagent.chat.cmd.sessions-delete.v1"
    answer_within_s: ClassVar = 10.0

    session_id: Id


class SessionChanged(Event):
    """A person created, renamed, archived, restored or shortened a session, or switched its branch.

    Turns tell of it in their own events.
    """

    subject: ClassVar = "popagent.chat.evt.sessions-changed.v1"

    session: SessionSummary


class SessionDeleted(Event):
    """Nothing of it is left but long-term memories."""

    subject: ClassVar = "popagent.chat.evt.sessions-deleted.v1"

    session_id: Id
