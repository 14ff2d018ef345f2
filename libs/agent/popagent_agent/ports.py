"""What the loop needs from outside; it knows no database, bus or HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from popagent_kit.errors import ConflictError
from popagent_models.events import ModelEvent
from popagent_models.request import ModelRequest
from popagent_uistream.chunks import Chunk

Emit: TypeAlias = Callable[[Chunk], Awaitable[None]]


class LeaseLostError(ConflictError):
    """This run belongs to somebody else by now; it must write and do nothing more."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it; `call_id` is unique within the turn's message."""

    call_id: str
    name: str
    arguments: dict[str, Any]


class ModelPort(Protocol):
    """Answers requests; `Finished` is the last event of a complete answer."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the events of one answer, or raise ModelError."""


class IntentPort(Protocol):
    """Writes down, fenced, that a call which is not read-only is about to be made."""

    async def record(self, step: int, call: ToolCall) -> None:
        """Return once the row is stored; raise LeaseLostError when it may not be. No row, no call."""


class LeasePort(Protocol):
    """Knows until when this run is ours."""

    def check(self) -> None:
        """Raise LeaseLostError once the local deadline has passed; asks nobody."""
