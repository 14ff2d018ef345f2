"""What the loop needs from outside; it knows no database, bus or HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from popagent_kit import json
from popagent_kit.errors import ConflictError
from popagent_models.events import ModelEvent, Usage
from popagent_models.request import ModelRequest
from popagent_uistream.chunks import Chunk

Emit: TypeAlias = Callable[[Chunk], Awaitable[None]]
DelegationState: TypeAlias = Literal["completed", "failed", "stopped"]


class LeaseLostError(ConflictError):
    """This run belongs to somebody else by now; it must write and do nothing more."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it; `call_id` is unique within the turn's message."""

    call_id: str
    name: str
    arguments: dict[str, Any]

    @property
    def content(self) -> tuple[str, bytes]:
        """What it asks for: the same in every call that repeats it."""
        return self.name, json.dumps(sorted(self.arguments.items()))


@dataclass(frozen=True, slots=True)
class DelegateThread:
    """What a delegate was asked and said. Its ids are its own, and stand in the metadata of each message.

    `call_id` is the call of the supervisor that made it.
    """

    thread_id: str
    resource_id: str
    agent_id: str
    call_id: str
    state: DelegationState
    messages: list[dict[str, Any]]
    usage: Usage


class DelegateThreads(Protocol):
    """Keeps what delegates said, apart from the chat."""

    async def keep(self, thread: DelegateThread) -> None:
        """Store it, fenced; raise LeaseLostError when it may not be. Any other failure costs the record alone."""


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
