"""Everything a turn says goes through here: legal order, open parts, no credentials, the message so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from popagent_agent.arguments_redaction import ArgumentsRedactor, plain_json
from popagent_agent.ports import Emit
from popagent_kit.text import excerpt
from popagent_telemetry import StreamRedactor, redact, redact_value
from popagent_uistream import chunks
from popagent_uistream.chunks import UNSET, Chunk, Optional
from popagent_uistream.reducer import MessageReducer
from popagent_uistream.state import StreamState

# Sent to those who watch; the server alone keeps it with the message (SE-4).
AGENT_ACTIVITY: Final = "agentActivity"
ACTIVITY_PART: Final = f"data-{AGENT_ACTIVITY}"
# Of arguments that cannot be used.
SHOWN_ARGUMENTS: Final = 2_000


class Emitter:
    """Sends chunks of one message. Text and reasoning open their part by themselves; only one is open at a time.

    Credentials go here, so that what is watched, stored and read by the model again is the same text.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._state = StreamState()
        self._reducer = MessageReducer(store_transient=(ACTIVITY_PART,))
        self._open: tuple[Literal["text", "reasoning"], str] | None = None
        self._opened = 0
        self._unsettled: dict[str, None] = {}
        self._growing = StreamRedactor()
        self._arguments: dict[str, ArgumentsRedactor] = {}

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of the message so far."""
        parts: list[dict[str, Any]] = self._reducer.message["parts"]
        return parts

    async def send(self, chunk: Chunk) -> None:
        """Send a chunk that stands in legal order."""
        self._state.accept(chunk)
        self._reducer.apply(chunk)
        await self._emit(chunk)

    async def text(self, delta: str) -> None:
        """Go on with the answer."""
        part_id = await self._part("text")
        if shown := self._growing.feed(delta):
            await self.send(chunks.text_delta(part_id, shown))

    async def reasoning(self, delta: str) -> None:
        """Go on with the reasoning."""
        part_id = await self._part("reasoning")
        if shown := self._growing.feed(delta):
            await self.send(chunks.reasoning_delta(part_id, shown))

    async def say(self, text: str, mark: Mapping[str, Any] | Optional = UNSET) -> None:
        """Add a text of our own as a part by itself, in a step when none is open; `mark` is its provider metadata."""
        await self.close_part()
        if not self._state.step_open:
            await self.start_step()
        part_id = await self._part("text", mark)
        await self.send(chunks.text_delta(part_id, redact(text)))
        await self.close_part()

    async def activity(self, delegation_id: str, delta: Mapping[str, Any]) -> None:
        """Tell what changed in a delegation; it is merged with what was told before. After the end nobody hears it."""
        if not self._state.ended:
            told = redact_value(delta)
            await self.send(chunks.data(AGENT_ACTIVITY, told, data_id=delegation_id, transient=True))

    async def close_part(self) -> None:
        """Close the open text or reasoning, if any."""
        if self._open is not None:
            kind, part_id = self._open
            if rest := self._growing.end():
                delta = chunks.text_delta if kind == "text" else chunks.reasoning_delta
                await self.send(delta(part_id, rest))
            self._open = None
            await self.send(chunks.text_end(part_id) if kind == "text" else chunks.reasoning_end(part_id))

    async def start_step(self) -> None:
        """Open a step."""
        await self.send(chunks.start_step())

    async def finish_step(self) -> None:
        """Close the step and the part that is open in it."""
        await self.close_part()
        await self.send(chunks.finish_step())

    async def call_started(self, call_id: str, name: str) -> None:
        """Announce a call whose arguments follow."""
        await self.close_part()
        self._unsettled[call_id] = None
        self._arguments[call_id] = ArgumentsRedactor()
        await self.send(chunks.tool_input_start(call_id, redact(name)))

    async def call_delta(self, call_id: str, fragment: str) -> None:
        """Go on with the arguments."""
        if shown := self._arguments[call_id].feed(fragment):
            await self.send(chunks.tool_input_delta(call_id, shown))

    async def call_complete(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        """Give the parsed arguments of a call; it is carried out next."""
        self._arguments.pop(call_id, None)
        await self.send(chunks.tool_input_available(call_id, redact(name), redact_value(arguments)))

    async def call_refused(self, call_id: str, name: str, given: str, error_text: str) -> None:
        """Settle a call whose arguments are unusable."""
        del self._unsettled[call_id]
        self._arguments.pop(call_id, None)
        shown = excerpt(redact(plain_json(given)), SHOWN_ARGUMENTS)
        await self.send(chunks.tool_input_error(call_id, redact(name), shown, redact(error_text)))

    async def call_settled(
        self, call_id: str, text: str, *, error: bool, took_s: float | None = None, refused: bool = False
    ) -> None:
        """Give a call its result, and how long it ran if it did; `refused` when a hook kept it from being made."""
        del self._unsettled[call_id]
        told = chunks.tool_output_error if error else chunks.tool_output_available
        about: dict[str, Any] = {} if took_s is None else {"durationMs": round(took_s * 1_000)}
        if refused:
            about["refused"] = True
        await self.send(told(call_id, redact(text), tool_metadata=about or UNSET))

    async def settle(self, error_text: str) -> None:
        """Close the open part and fail every call without a result; the step stays open."""
        await self.close_part()
        for call_id in tuple(self._unsettled):
            await self.call_settled(call_id, error_text, error=True)

    async def end(self, last: Chunk, metadata: Mapping[str, Any], error_text: str) -> None:
        """Close what is open, then send the metadata and the last chunk."""
        await self.settle(error_text)
        if self._state.step_open:
            await self.finish_step()
        await self.send(chunks.message_metadata(redact_value(metadata)))
        await self.send(redact_value(last))

    async def _part(self, kind: Literal["text", "reasoning"], mark: Mapping[str, Any] | Optional = UNSET) -> str:
        if self._open is not None and self._open[0] == kind:
            return self._open[1]
        await self.close_part()
        self._opened += 1
        part_id = f"{kind}-{self._opened}"
        # Before the chunk is sent: what was accepted must be closed, whatever happens while it is sent.
        self._open = (kind, part_id)
        begin = chunks.text_start if kind == "text" else chunks.reasoning_start
        await self.send(begin(part_id, provider_metadata=mark))
        return part_id
