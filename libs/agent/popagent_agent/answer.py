"""One model call: its events become chunks as they arrive, and what it said is collected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from popagent_agent.emitter import Emitter
from popagent_agent.ports import ModelPort
from popagent_agent.stopping import StoppedError, StopSignal
from popagent_agent.text_calls import TextCallWatch
from popagent_agent.toolset import LARGEST_ARGUMENTS_BYTES
from popagent_kit.errors import AppError, RateLimitedError
from popagent_kit.text import excerpt
from popagent_models.errors import ModelError, ModelProviderError, ModelRateLimitedError
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
from popagent_models.request import ModelRequest

log = logging.getLogger(__name__)

# Characters of text and reasoning in one answer; a server that sends more has lost itself.
LONGEST_ANSWER: Final = 2_000_000
LONGEST_TOOL_NAME: Final = 128
BROKEN_OFF: Final = "The model's answer broke off before its end."
ENDLESS: Final = f"The model did not stop writing; its answer was ended after {LONGEST_ANSWER:,} characters."


@dataclass(slots=True)
class CallDraft:
    """A tool call as it was streamed; `size` counts all its characters, of which about the first million are kept."""

    call_id: str
    name: str
    fragments: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def arguments(self) -> str:
        """The text of the arguments."""
        return "".join(self.fragments)


@dataclass(slots=True)
class Answer:
    """What one model call said; `usage` is None when the call ended before it was told."""

    texts: list[str] = field(default_factory=list)
    calls: list[CallDraft] = field(default_factory=list)
    finish: FinishReason | None = None
    usage: Usage | None = None
    size: int = 0

    @property
    def text(self) -> str:
        """The visible text."""
        return "".join(self.texts)


async def events_of(model: ModelPort, request: ModelRequest, stop: StopSignal) -> AsyncGenerator[ModelEvent, None]:
    """Yield what the model says; leave it closed, and the model's stream is closed with it.

    Raises:
        ModelError: The model failed, or something on our side on the way to it.
        StoppedError: The run was stopped.
    """
    stream = model.stream(request)
    try:
        while (event := await _next(stream, stop)) is not None:
            yield event
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def _next(stream: AsyncIterator[ModelEvent], stop: StopSignal) -> ModelEvent | None:
    with stop.interrupts():
        try:
            return await anext(stream, None)
        except (ModelError, asyncio.CancelledError):
            raise
        except RateLimitedError as error:
            raise ModelRateLimitedError(error.message, retry_after_s=error.retry_after_s) from error
        except AppError as error:
            raise ModelProviderError(error.message) from error
        except Exception as error:
            log.exception("model port failed")
            raise ModelProviderError("Something broke on our side while the model was asked.") from error


class AnswerReader:
    """Reads one answer into `answer`, which holds what came even when the reading ends in an error or a stop.

    Calls of `tools` that are written as text are calls too, see `text_calls`. Where it `may_call` nothing, calls are
    dropped unseen: the model was told that it has no tools now. `call_ids` are those of the turn.
    """

    def __init__(
        self, out: Emitter, stop: StopSignal, call_ids: set[str], *, tools: Collection[str], may_call: bool
    ) -> None:
        self.answer = Answer()
        self._out = out
        self._stop = stop
        self._call_ids = call_ids
        self._may_call = may_call
        self._watch = TextCallWatch(tools)
        self._by_index: dict[int, CallDraft] = {}

    async def read(self, model: ModelPort, request: ModelRequest) -> None:
        """Read to the end.

        Raises:
            ModelError: The model failed, or said more than LONGEST_ANSWER.
            StoppedError: The run was stopped; the model's stream is closed.
        """
        try:
            async with aclosing(events_of(model, request, self._stop)) as events:
                async for event in events:
                    await self._take(event)
            if self.answer.finish is None:
                raise ModelProviderError(BROKEN_OFF, started=True)
        except (ModelError, StoppedError):
            await self._say(self._watch.release())
            raise
        await self._settle_text()

    async def _settle_text(self) -> None:
        """Show what was held back of the text, as the calls that it is or as text."""
        rest, calls = self._watch.end()
        await self._say(rest)
        if calls:
            log.info("calls were written as text", extra={"count": len(calls), "carried_out": self._may_call})
        for number, call in enumerate(calls, start=len(self.answer.calls)):
            await self._call_started(ToolCallStart(number, f"text-call-{number}", call.name))
            await self._call_grew(ToolCallDelta(number, call.arguments))

    async def _say(self, text: str) -> None:
        if text:
            self.answer.texts.append(text)
            await self._out.text(text)

    async def _take(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text):
                self._grow(len(text))
                await self._say(self._watch.feed(text))
            case ReasoningDelta(text):
                self._grow(len(text))
                await self._out.reasoning(text)
            case ToolCallStart():
                await self._call_started(event)
            case ToolCallDelta():
                await self._call_grew(event)
            case Usage():
                self.answer.usage = event
            case Finished(reason):
                self.answer.finish = reason

    def _grow(self, characters: int) -> None:
        self.answer.size += characters
        if self.answer.size > LONGEST_ANSWER:
            raise ModelProviderError(ENDLESS, started=True)

    async def _call_started(self, event: ToolCallStart) -> None:
        await self._say(self._watch.release())
        if not self._may_call:
            return
        call = CallDraft(self._unique(event.call_id), excerpt(event.name, LONGEST_TOOL_NAME))
        self._by_index[event.index] = call
        self.answer.calls.append(call)
        await self._out.call_started(call.call_id, call.name)

    async def _call_grew(self, event: ToolCallDelta) -> None:
        call = self._by_index.get(event.index)
        if call is None:
            return
        before = call.size
        call.size += len(event.arguments_fragment)
        self._grow(len(event.arguments_fragment))
        # What passes the bound is read to its end and not kept; one fragment too many shows that it was passed.
        if before <= LARGEST_ARGUMENTS_BYTES:
            call.fragments.append(event.arguments_fragment)
            await self._out.call_delta(call.call_id, event.arguments_fragment)

    def _unique(self, call_id: str) -> str:
        """Servers count their calls anew in every answer; in one message an id means one call."""
        unique, count = call_id, 1
        while unique in self._call_ids:
            count += 1
            unique = f"{call_id}-{count}"
        self._call_ids.add(unique)
        return unique
