"""What a stored or streamed message says of itself beside its parts; the same in both."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Moment, Sparse, View
from popagent_proto.common import TurnEnd

# In the provider metadata of the text part that says why an answer failed: the same sentence as `error.text`.
FAILURE: Final[dict[str, dict[str, Any]]] = {"popagent": {"failure": True}}


class TokenUsage(View):
    """Tokens of all model calls of a turn; `estimated` when a model server did not tell."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    estimated: bool


class MessageError(Sparse):
    """Why an answer failed or was interrupted; `text` is one sentence for a person."""

    error_class: str = Field(alias="class")
    code: str | None = None
    text: str


class HookTally(Sparse):
    """How many runs of hooks a turn had, skipped ones too, and how many of them refused something."""

    runs: int
    denied: int


class MessageMetadata(Sparse):
    """`metadata` of a message; every field is absent until it is known.

    While an answer grows it has no `state`. A person's message has `createdAt` and `siblings` at most.
    """

    turn_id: Id | None = None
    trace_id: str | None = None
    created_at: Moment | None = Field(default=None, description="When the turn began, or the person wrote.")
    model: str | None = None
    state: TurnEnd | None = None
    duration_ms: int | None = Field(default=None, description="From the request to the stored end.")
    end_reason: Literal["stop", "length", "content-filter", "error", "stopped", "interrupted"] | None = None
    error: MessageError | None = Field(default=None, description="Of a failed or interrupted answer.")
    usage: TokenUsage | None = None
    steps: int | None = Field(default=None, description="Model calls.")
    budget_exhausted: bool | None = Field(default=None, description="The ceiling of steps forced the answer.")
    hooks: HookTally | None = Field(
        default=None, description="GET /api/sessions/{id}/hooks?turnId= tells of them; absent where none ran."
    )
    siblings: list[Id] | None = Field(
        default=None,
        description="Ids of the messages at this place of the thread, this one among them, oldest first: only in "
        "GET /api/sessions/{id}, and only of messages that have siblings.",
    )


class ToolMetadata(Sparse):
    """`toolMetadata` of a tool part; absent from other calls that were not carried out, or did not end."""

    duration_ms: int | None = None
    refused: bool | None = Field(default=None, description="A hook kept the call from being made; its error says why.")


class ActivityEntry(Sparse):
    """Something a specialist did in a step: a piece of text, pieces of one step belong together, or a tool call."""

    step: int
    kind: Literal["text", "call"]
    text: str | None = None
    tool: str | None = None
    input: str | None = Field(default=None, description="The beginning of the arguments, for a person.")
    state: Literal["running", "done", "failed"] | None = Field(default=None, description="Of a call.")
    refusal: str | None = Field(default=None, description="Why a hook kept the call from being made; it failed then.")
    duration_ms: int | None = None


class AgentActivity(Sparse):
    """`data` of a `data-agentActivity` part, whose id is the delegating tool call.

    Of an agent that a letter woke it is the call which sent the letter, after those that led to it, with slashes.
    In the stream each chunk holds only what changed: objects merge deeply over what was told before, values replace.
    The stored message has the whole.
    """

    agent_id: str | None = None
    agent_name: str | None = None
    model: str | None = None
    thread_id: Id | None = Field(default=None, description="Where the specialist's own messages are.")
    task: str | None = Field(default=None, description="The beginning of what it was asked.")
    asked_by: Id | None = Field(
        default=None, description="The agent whose letter woke it; absent where work was given to it."
    )
    max_steps: int | None = None
    started_at: Moment | None = None
    state: Literal["running", "completed", "failed", "stopped"] | None = None
    steps: int | None = Field(default=None, description="Model calls so far.")
    entries: dict[str, ActivityEntry] | None = Field(default=None, description="By number, from 1; at most 200.")
    omitted: int | None = Field(default=None, description="Entries beyond those.")
    usage: TokenUsage | None = None
    duration_ms: int | None = None
    budget_exhausted: bool | None = Field(default=None, description="The ceiling of steps forced its answer.")


class TextMetadata(Sparse):
    """`providerMetadata.popagent` of a text part: `failure` marks the sentence that is also `metadata.error.text`."""

    failure: bool | None = None
