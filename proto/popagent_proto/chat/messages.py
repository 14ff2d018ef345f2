"""What a stored or streamed message says of itself beside its parts; the same in both."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Moment, Sparse, View

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


class MessageMetadata(Sparse):
    """`metadata` of a message; every field is absent until it is known.

    While an answer grows it has no `state`. A person's message has `createdAt` and `siblings` at most.
    """

    turn_id: Id | None = None
    trace_id: str | None = None
    created_at: Moment | None = Field(default=None, description="When the turn began, or the person wrote.")
    model: str | None = None
    state: Literal["completed", "stopped", "failed", "interrupted"] | None = None
    duration_ms: int | None = Field(default=None, description="From the request to the stored end.")
    end_reason: Literal["stop", "length", "content-filter", "error", "stopped", "interrupted"] | None = None
    error: MessageError | None = Field(default=None, description="Of a failed or interrupted answer.")
    usage: TokenUsage | None = None
    steps: int | None = Field(default=None, description="Model calls.")
    budget_exhausted: bool | None = Field(default=None, description="The ceiling of steps forced the answer.")
    siblings: list[Id] | None = Field(
        default=None,
        description="Ids of the messages at this place of the thread, this one among them, oldest first: only in "
        "GET /api/sessions/{id}, and only of messages that have siblings.",
    )


class ToolMetadata(Sparse):
    """`toolMetadata` of a tool part; absent from calls that were not carried out, or did not end."""

    duration_ms: int | None = None


class TextMetadata(Sparse):
    """`providerMetadata.popagent` of a text part: `failure` marks the sentence that is also `metadata.error.text`."""

    failure: bool | None = None
