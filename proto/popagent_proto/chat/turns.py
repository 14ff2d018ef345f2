"""Turns: one request of a person and everything the agents did for it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from popagent_kit.errors import NotFoundError
from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Query, Text, View, Wire
from popagent_proto.chat.models import ModelId
from popagent_proto.chat.sessions import SessionSummary
from popagent_proto.common import TurnEnd

MESSAGE_CHARACTERS = 200_000
SEEN_MESSAGES = 20
TurnState = Literal["queued", "running", TurnEnd]
Trigger = Literal["submit-message", "regenerate-message"]


class TextPart(Wire):
    """Text a person wrote; `state` and `providerMetadata` of a client are dropped."""

    type: Literal["text"]
    text: Text = Field(min_length=1, max_length=MESSAGE_CHARACTERS)
    state: Any = Field(default=None, exclude=True)
    provider_metadata: Any = Field(default=None, exclude=True)


class UserMessage(Wire):
    """The one message a turn takes from a client; another role is refused."""

    id: Id
    role: Literal["user"]
    parts: list[TextPart] = Field(min_length=1, max_length=64)
    metadata: Any = Field(default=None, exclude=True)

    @field_validator("parts")
    @classmethod
    def _says_something(cls, parts: list[TextPart]) -> list[TextPart]:
        if not any(part.text.strip() for part in parts):
            raise ValueError("must not be blank")
        return parts


class ChatRequest(Wire):
    """Body of POST /api/chat; with `messages`, as the stock client sends it, the last user message is taken.

    Any other key is refused: tools, system text and execution options are the server's.
    """

    id: Id = Field(description="The session; an unknown id creates it.")
    message: dict[str, Any] | None = None
    messages: list[dict[str, Any]] | None = Field(default=None, max_length=10_000)
    trigger: Trigger = "submit-message"
    message_id: Id | None = None
    parent_id: Id | None = Field(
        default=None,
        description="The message that the client shows above the new one, null when there is none. Without it, those "
        "of `messages` count; without either, the message follows whatever is the last one.",
    )
    model: ModelId | None = None
    workspace_id: Id | None = None


class TurnView(View):
    """Which turn answers; `created` is false when the same message had started it before."""

    turn_id: Id
    session_id: Id
    message_id: Id = Field(description="Of the assistant message.")
    state: TurnState
    created: bool


class StartTurn(Command[TurnView]):
    """Store the message and its turn; repeated with the same `turn_id`, or the same message, it is the same turn.

    A session with another running turn answers 409 `turn_running`. `regenerate-message`, or an edit (`message_id`
    names a user message and the content differs), starts a sibling branch; a stored message never changes.
    When what was `seen` is not the end of the shown branch: 409 `branch_changed`.
    """

    subject: ClassVar = "popagent.chat.cmd.turns-start.v1"

    turn_id: Id
    session_id: Id
    message: UserMessage | None = Field(description="Absent only when an answer is regenerated.")
    trigger: Trigger = "submit-message"
    message_id: Id | None = None
    model: ModelId | None = None
    workspace_id: Id | None = None
    seen: list[Id] | None = Field(
        default=None,
        max_length=SEEN_MESSAGES,
        description="What the client shows above the message, the nearest first; null when that is not known.",
    )


class NothingRunsError(NotFoundError):
    """Nothing is running in this session."""

    code = "nothing_runs"


class StopTurn(Command[TurnView]):
    """Ask the session's running turn to stop; answers with its state, 404 when none runs."""

    subject: ClassVar = "popagent.chat.cmd.turns-stop.v1"

    session_id: Id


class TurnSnapshotView(View):
    """The running message so far as ready SSE text, to be followed by the live frames from chunk `next_chunk`."""

    turn_id: Id
    message_id: Id
    state: TurnState
    next_chunk: int
    sse: str


class SnapshotTurn(Query[TurnSnapshotView]):
    """Of the session's running turn, or of the named one; 404 when nothing runs."""

    subject: ClassVar = "popagent.chat.qry.turns-snapshot.v1"

    session_id: Id
    turn_id: Id | None = None


class TurnStarted(Event):
    """A turn waits for its first model call."""

    subject: ClassVar = "popagent.chat.evt.turns-started.v1"

    turn_id: Id
    session: SessionSummary
    trace_id: str | None


class TurnEnded(Event):
    """A turn ended, once; `excerpt` is the beginning of its answer."""

    subject: ClassVar = "popagent.chat.evt.turns-ended.v1"

    turn_id: Id
    session: SessionSummary
    state: TurnState
    error_class: str | None
    excerpt: str = Field(max_length=8_000)
    input_tokens: int
    output_tokens: int
    trace_id: str | None
