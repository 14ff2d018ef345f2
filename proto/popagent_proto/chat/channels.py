"""Channels: what people and agents write where everybody reads it, and the tasks that a post starts."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from popagent_kit.errors import ConflictError, NotFoundError, RateLimitedError
from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, ListView, Moment, Query, Text, View, Wire, not_blank
from popagent_proto.task_runner.tasks import EXCERPT_CHARACTERS, TaskState

GENERAL: Final = "general"
BODY_CHARACTERS: Final = 40_000
MOST_MESSAGES: Final = 200
POSTS_A_MINUTE: Final = 60

AuthorKind = Literal["user", "agent", "system"]
RunState = Literal["waiting"] | TaskState


Markdown = Annotated[
    Text,
    Field(min_length=1, max_length=BODY_CHARACTERS, description="Markdown; characters, not bytes."),
    AfterValidator(not_blank),
]


class ChannelView(View):
    """A channel and how far it was read."""

    id: Id
    title: str
    last_seq: int = Field(description="Of its newest message; 0 when there is none.")
    last_read_seq: int
    unread: int = Field(description="Messages of others behind the one that was read last; 1,000 at most.")
    revision: int = Field(description="Of its newest change.")
    created_at: Moment


class ChannelList(ListView):
    """By title; never more than a page."""

    items: list[ChannelView]


class ChannelSettingsView(View):
    """What posts start."""

    auto_reply: bool = Field(description="A post that mentions nobody is answered too.")
    agent_id: Id | None = Field(description="Who answers such a post. Null: the orchestrator.")
    revision: int
    updated_at: Moment


class ChannelSettingsPatch(Wire):
    """Fields to change; an absent one stays. `revision`, when sent, must be the stored one."""

    revision: int | None = Field(default=None, ge=0, description="The one you saw last.")
    auto_reply: bool | None = None
    agent_id: Id | None = None


class ChannelRun(View):
    """The task that a post started."""

    task_id: Id
    agent_id: Id | None = Field(description="Null: the orchestrator.")
    state: RunState = Field(description="waiting: the task is being made.")
    note: str = Field(description="Why there is no task yet, or none at all.")


class ChannelMessage(View):
    """A message. Who wrote it is said by popagent alone, never by a client."""

    id: Id
    channel_id: Id
    seq: int = Field(description="Its place in the channel, without a hole; it never changes.")
    revision: int = Field(description="Of its newest change, in the order of all changes of the channel.")
    thread_id: Id | None = Field(description="The message that it answers; that one answers none.")
    author_kind: AuthorKind
    author_id: Id = Field(description="`user`, the id of an agent, or `popagent`.")
    author_name: str
    body: str = Field(description="Markdown; empty when it was deleted.")
    mentions: list[Id] = Field(description="The agents that it names and that work can be given to.")
    workspace_id: Id | None
    run: ChannelRun | None = Field(description="The task that it started.")
    task_id: Id | None = Field(description="The task that it tells of.")
    edited_at: Moment | None
    deleted_at: Moment | None
    created_at: Moment


class ChannelHistory(View):
    """Oldest first, about 700 kB at most."""

    items: list[ChannelMessage]
    previous_seq: int | None = Field(description="Asks for the messages before these; null at the beginning.")
    revision: int = Field(description="Of the channel; follow it from here.")


class ChannelChanges(View):
    """Messages that are new or were changed, each as it is now, in the order of their revisions."""

    items: list[ChannelMessage]
    revision: int = Field(description="Ask for what came after this one.")
    more: bool
    reset: bool = Field(description="Changes are missing here: load the history again.")


class PostBody(Wire):
    """What a client writes. It says nothing about who wrote it."""

    body: Markdown
    thread_id: Id | None = Field(default=None, description="A message of the channel that this one answers.")
    workspace_id: Id | None = Field(
        default=None, description="Where an agent that is mentioned works; the default workspace when absent."
    )


class EditBody(Wire):
    """Another text."""

    body: Markdown


class ReadBody(Wire):
    """How far somebody has read."""

    seq: int = Field(ge=0, le=2**62)


class ChannelNotFoundError(NotFoundError):
    """There is no channel with this id."""


class ChannelMessageNotFoundError(NotFoundError):
    """There is no message with this id in this channel."""


class NotYourMessageError(ConflictError):
    """This message was written by popagent or an agent. It can be deleted, and not be edited."""

    code = "not_your_message"


class MessageDeletedError(ConflictError):
    """This message was deleted."""

    code = "message_deleted"


class NoRunError(ConflictError):
    """This message started nothing that could be cancelled."""

    code = "no_run"


class TooManyPostsError(RateLimitedError):
    """There were 60 posts within a minute. Wait a little."""

    code = "too_many_posts"


class ListChannels(Query[ChannelList]):
    """All of them."""

    subject: ClassVar = "popagent.chat.qry.channels-list.v1"


class GetChannelSettings(Query[ChannelSettingsView]):
    """One row for all channels."""

    subject: ClassVar = "popagent.chat.qry.channels-settings.v1"


class PatchChannelSettings(Command[ChannelSettingsView]):
    """Change what posts start; the next post goes by it."""

    subject: ClassVar = "popagent.chat.cmd.channels-settings.v1"

    command_id: Id
    body: ChannelSettingsPatch


class ReadChannel(Query[ChannelHistory]):
    """The newest messages, or those before one, of the channel or of one thread of it."""

    subject: ClassVar = "popagent.chat.qry.channels-history.v1"

    channel_id: Id
    before_seq: int | None = Field(default=None, ge=0, le=2**62)
    thread_id: Id | None = Field(default=None, description="Only this message and its answers.")
    limit: int = Field(default=50, ge=1, le=MOST_MESSAGES)


class ReadChannelChanges(Query[ChannelChanges]):
    """What came after a revision."""

    subject: ClassVar = "popagent.chat.qry.channels-changes.v1"

    channel_id: Id
    after: int | None = Field(default=None, ge=0, le=2**62, description="From now on when absent.")


class PostMessage(Command[ChannelMessage]):
    """Store a message; the command's id is the message's, so that a repeated command gives the stored one.

    One that mentions an agent, or any while auto-reply is on, starts one task, whose id is the message's too.
    """

    subject: ClassVar = "popagent.chat.cmd.channels-post.v1"

    command_id: Id
    channel_id: Id
    post: PostBody


class EditMessage(Command[ChannelMessage]):
    """Change the text of a person's message; what it started goes on."""

    subject: ClassVar = "popagent.chat.cmd.channels-edit.v1"

    channel_id: Id
    message_id: Id
    body: Markdown


class DeleteMessage(Command[ChannelMessage]):
    """Take the text out for good; its place stays."""

    subject: ClassVar = "popagent.chat.cmd.channels-delete.v1"

    channel_id: Id
    message_id: Id


class CancelMessageRun(Command[ChannelMessage]):
    """Cancel the task that a message started; what runs is `cancelling` until it has ended. Again: the same answer."""

    subject: ClassVar = "popagent.chat.cmd.channels-cancel.v1"

    channel_id: Id
    message_id: Id


class MarkChannelRead(Command[ChannelView]):
    """Remember how far the channel was read; it never goes back."""

    subject: ClassVar = "popagent.chat.cmd.channels-read.v1"

    channel_id: Id
    seq: int = Field(ge=0, le=2**62)


class ChannelMessageChanged(Event):
    """A message is new, was edited or deleted, or its task is in another state. Its version is its revision."""

    subject: ClassVar = "popagent.chat.evt.channels-message.v1"

    channel_id: Id
    message_id: Id
    seq: int
    thread_id: Id | None
    author_kind: AuthorKind
    run_state: RunState | None
    task_id: Id | None
    deleted: bool
    excerpt: str = Field(max_length=EXCERPT_CHARACTERS, description="The beginning of its text.")


class ChannelSettingsChanged(Event):
    """The next post goes by these."""

    subject: ClassVar = "popagent.chat.evt.channels-settings.v1"

    settings: ChannelSettingsView
