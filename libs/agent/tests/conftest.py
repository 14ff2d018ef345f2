"""A turn over doubles of the loop's ports: a model that plays a script, and records of everything that came out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from popagent_agent.loop import AgentRun, DelegatesPort, TurnResult, run_turn
from popagent_agent.ports import ToolCall
from popagent_agent.run_context import AgentProfile, RunContext, WorkspacePolicy
from popagent_agent.stopping import StopSignal
from popagent_agent.toolset import Tool, Toolset
from popagent_kit import json
from popagent_models.events import (
    Finished,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from popagent_models.profile import ModelProfile
from popagent_models.request import ModelRequest
from popagent_models.routing import Route
from popagent_testing.runtime_settings import agent_runtime
from popagent_uistream.chunks import Chunk
from popagent_uistream.encode import encode

REMINDER = "No steps are left."
Reply = list[ModelEvent | BaseException | asyncio.Event]


def says(text: str, *, reason: FinishReason = "stop", usage: Usage | None = None) -> Reply:
    """A reply of text, in two pieces."""
    half = len(text) // 2
    texts = [TextDelta(piece) for piece in (text[:half], text[half:]) if piece]
    return [*texts, usage or Usage(10, 5), Finished(reason)]


def thinks(text: str) -> Reply:
    """Reasoning, to be followed by another reply."""
    return [ReasoningDelta(text)]


def calls(*made: tuple[str, dict[str, Any] | str], text: str = "", ids: Sequence[str] = ()) -> Reply:
    """A reply that calls tools; arguments as text are sent as they are, in pieces."""
    events: Reply = [TextDelta(text)] if text else []
    for index, (name, arguments) in enumerate(made):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments).decode()
        events.append(ToolCallStart(index, ids[index] if ids else f"call-{index}", name))
        events += [ToolCallDelta(index, raw[at : at + 400_000]) for at in range(0, len(raw), 400_000)]
    return [*events, Usage(20, 7), Finished("tool-calls")]


@dataclass
class ScriptedModel:
    """Plays one reply a call, the last one for ever; an Event in a reply is waited for."""

    replies: list[Reply]
    requests: list[ModelRequest] = field(default_factory=list)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    closed: int = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        try:
            for event in reply:
                if isinstance(event, BaseException):
                    raise event
                if isinstance(event, asyncio.Event):
                    self.waiting.set()
                    await event.wait()
                else:
                    yield event
        finally:
            self.closed += 1


@dataclass
class Intents:
    """Records intents; raises what it is told to."""

    rows: list[tuple[int, ToolCall]] = field(default_factory=list)
    error: Exception | None = None

    async def record(self, step: int, call: ToolCall) -> None:
        if self.error is not None:
            raise self.error
        self.rows.append((step, call))


@dataclass
class Lease:
    """Lasts until it is told otherwise."""

    error: Exception | None = None
    checks: int = 0

    def check(self) -> None:
        self.checks += 1
        if self.error is not None:
            raise self.error


SETTINGS = agent_runtime(final_response_feedback=REMINDER, processor_retries=2, revision=3)


def context(**changes: Any) -> RunContext:
    """A run context of a small model with a writable policy."""
    made = RunContext(
        turn_id="turn-1",
        session_id="session-1",
        trace_id=None,
        settings=SETTINGS,
        agent=AgentProfile("orchestrator", "Orchestrator", "You are the orchestrator."),
        route=Route("scripted", "default", "It is the default."),
        model=ModelProfile(8_192, 8, 600, 300.0),
        policy=WorkspacePolicy("read-write"),
    )
    return replace(made, **changes)


def user(text: str) -> dict[str, Any]:
    return {"id": "m", "role": "user", "parts": [{"type": "text", "text": text}]}


@dataclass
class Turn:
    """One turn; after `run` it holds everything the turn did."""

    model: ScriptedModel
    tools: Toolset
    context: RunContext = field(default_factory=context)
    history: Sequence[dict[str, Any]] = ()
    message: dict[str, Any] = field(default_factory=lambda: user("Hello?"))
    max_steps: int = 8
    intents: Intents = field(default_factory=Intents)
    lease: Lease = field(default_factory=Lease)
    stop: StopSignal = field(default_factory=StopSignal)
    delegates: DelegatesPort | None = None
    chunks: list[Chunk] = field(default_factory=list)
    on_chunk: Callable[[Chunk], None] = lambda _: None

    async def emit(self, chunk: Chunk) -> None:
        encode(chunk)
        self.chunks.append(chunk)
        self.on_chunk(chunk)
        await asyncio.sleep(0)

    async def run(self) -> TurnResult:
        run = AgentRun(self.context, "answer-1", self.history, self.message, self.max_steps)
        return await run_turn(
            run,
            model=self.model,
            tools=self.tools,
            intents=self.intents,
            emit=self.emit,
            stop=self.stop,
            lease=self.lease,
            delegates=self.delegates,
        )

    @property
    def kinds(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]


class Kit:
    """What the tests make their turns of."""

    says = staticmethod(says)
    thinks = staticmethod(thinks)
    calls = staticmethod(calls)
    user = staticmethod(user)
    context = staticmethod(context)
    model = ScriptedModel
    reminder = REMINDER
    settings = SETTINGS

    @staticmethod
    def turn(*replies: Reply, tools: Sequence[Tool] = (), **options: Any) -> Turn:
        return Turn(ScriptedModel(list(replies)), Toolset(tools), **options)


@pytest.fixture
def kit() -> type[Kit]:
    return Kit


def text_of(result: TurnResult) -> str:
    return "\n".join(part["text"] for part in result.parts if part["type"] == "text")


@pytest.fixture
def answer_of() -> Callable[[TurnResult], str]:
    return text_of
