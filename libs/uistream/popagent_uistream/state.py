"""The legal order of chunks: stricter than the official client, so that any client understands the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from popagent_uistream import chunks
from popagent_uistream.chunks import Chunk

INTERRUPTED: Final = "interrupted"

# Which states of a call a chunk may follow, and the state that it leads to; None is "not known in this step".
_TOOL_MOVES: Final[dict[str, tuple[frozenset[str | None], str]]] = {
    "tool-input-start": (frozenset({None}), "input-streaming"),
    "tool-input-delta": (frozenset({"input-streaming"}), "input-streaming"),
    "tool-input-available": (frozenset({None, "input-streaming"}), "input-available"),
    "tool-input-error": (frozenset({None, "input-streaming"}), "settled"),
    "tool-approval-request": (frozenset({"input-available"}), "approval-requested"),
    "tool-output-available": (frozenset({"input-available", "approval-responded", "preliminary"}), "settled"),
    "tool-output-error": (
        frozenset({"input-streaming", "input-available", "approval-responded", "preliminary"}),
        "settled",
    ),
    "tool-output-denied": (frozenset({"approval-responded"}), "settled"),
}
_FREE: Final = frozenset({"source-url", "source-document", "file", "message-metadata"})
_ENDS: Final = frozenset({"finish", "abort", "error"})
# Nobody will answer for these any more; a call that waits for a person's approval may outlive its stream.
_UNSETTLED: Final = frozenset({"input-streaming", "input-available", "approval-responded", "preliminary"})


class IllegalChunkError(ValueError):
    """The chunk may not follow what was sent."""


@dataclass(slots=True)
class _Call:
    state: str
    name: str
    dynamic: bool
    step: int


class StreamState:
    """What is open in a stream; `accept` refuses an illegal chunk and stays as it was."""

    def __init__(self) -> None:
        self.started = False
        self.ended = False
        self.step_open = False
        self._step = 0
        self._open: dict[tuple[str, str], None] = {}  # (text|reasoning, id) in the order of opening
        self._calls: dict[str, _Call] = {}

    @classmethod
    def of(cls, message: dict[str, Any]) -> StreamState:
        """Return the state after the chunks that made `message` (as MessageReducer keeps it), end excluded."""
        state = cls()
        state.started = True
        for part in message["parts"]:
            kind = part["type"]
            if kind == "step-start":
                state._step += 1
                state.step_open = part.get("open", False)
            elif kind in {"text", "reasoning"} and part.get("state") == "streaming" and "id" in part:
                state._open[kind, part["id"]] = None
            elif "toolCallId" in part:
                state._calls[part["toolCallId"]] = _call_of(part, state._step)
        return state

    def accept(self, chunk: Chunk) -> Chunk:
        """Return `chunk`, counted as sent.

        Raises:
            IllegalChunkError: It may not come now, or its type is not of the v6 set.
        """
        kind = chunk["type"]
        if self.ended:
            raise IllegalChunkError(f"{kind} after the end")
        if self.started is (kind == "start") and kind != "error":
            raise IllegalChunkError("start comes first, and once" if self.started else f"{kind} before start")
        if kind == "start":
            self.started = True
        elif kind in _TOOL_MOVES:
            self._tool(kind, chunk)
        elif kind in {"start-step", "finish-step"}:
            self._step_boundary(kind)
        elif kind in _ENDS:
            self._end(kind)
        elif kind.startswith(("text-", "reasoning-")):
            self._part(kind, chunk)
        elif kind not in _FREE and not kind.startswith("data-"):
            raise IllegalChunkError(f"{kind} is not a chunk of the v6 set")
        return chunk

    def close_open(self, error_text: str = INTERRUPTED) -> list[Chunk]:
        """Return the chunks that close whatever is open, counted as sent; unfinished calls end with `error_text`."""
        if not self.started or self.ended:
            return []
        closing = [{"type": f"{kind}-end", "id": part_id} for kind, part_id in self._open]
        closing += [
            chunks.tool_output_error(call_id, error_text)
            for call_id, call in self._calls.items()
            if call.state in _UNSETTLED
        ]
        if self.step_open:
            closing.append(chunks.finish_step())
        return [self.accept(chunk) for chunk in closing]

    def end(self, chunk: Chunk, error_text: str = INTERRUPTED) -> list[Chunk]:
        """Return finish, abort or error preceded by whatever must be closed first, all counted as sent."""
        return [*self.close_open(error_text), self.accept(chunk)]

    def _part(self, kind: str, chunk: Chunk) -> None:
        part, _, move = kind.partition("-")
        key = (part, chunk["id"])
        if move not in {"start", "delta", "end"}:
            raise IllegalChunkError(f"{kind} is not a chunk of the v6 set")
        if (key in self._open) is (move == "start"):
            raise IllegalChunkError(f"{kind}: {chunk['id']} is {'already' if move == 'start' else 'not'} open")
        if move == "start":
            self._open[key] = None
        elif move == "end":
            del self._open[key]

    def _tool(self, kind: str, chunk: Chunk) -> None:
        call_id = chunk["toolCallId"]
        call = self._calls.get(call_id)
        sources, target = _TOOL_MOVES[kind]
        # Models count their calls anew in every step, so a settled id may be used again in a later one.
        known = call.state if call and not (call.state == "settled" and call.step < self._step) else None
        if known not in sources:
            raise IllegalChunkError(f"{kind}: call {call_id} is {known or 'not known'}")
        if kind == "tool-output-available" and chunk.get("preliminary"):
            target = "preliminary"
        name, dynamic = chunk.get("toolName"), bool(chunk.get("dynamic"))
        if call and known:
            if name is not None and (name, dynamic) != (call.name, call.dynamic):
                raise IllegalChunkError(f"{kind}: call {call_id} began as another tool")
            call.state = target
        else:
            self._calls[call_id] = _Call(target, chunk["toolName"], dynamic, self._step)

    def _step_boundary(self, kind: str) -> None:
        if self.step_open is (kind == "start-step"):
            raise IllegalChunkError(f"{kind} while a step is {'open' if self.step_open else 'not open'}")
        self._refuse_open_parts(kind)
        self.step_open = kind == "start-step"
        self._step += self.step_open

    def _end(self, kind: str) -> None:
        if self.step_open:
            raise IllegalChunkError(f"{kind} while a step is open")
        self._refuse_open_parts(kind)
        for call_id, call in self._calls.items():
            if call.state in _UNSETTLED:
                raise IllegalChunkError(f"{kind} while call {call_id} has no result")
        self.ended = True

    def _refuse_open_parts(self, kind: str) -> None:
        """The client forgets open parts at a step's end and looks for growing calls in the current step only."""
        if self._open:
            raise IllegalChunkError(f"{kind} while {', '.join(map('-'.join, self._open))} is open")
        for call_id, call in self._calls.items():
            if call.state == "input-streaming":
                raise IllegalChunkError(f"{kind} while the input of call {call_id} is streaming")


def _call_of(part: dict[str, Any], step: int) -> _Call:
    state = part["state"]
    if state in {"output-available", "output-error", "output-denied"}:
        state = "preliminary" if part.get("preliminary") else "settled"
    dynamic = part["type"] == "dynamic-tool"
    return _Call(state, part["toolName"] if dynamic else part["type"].removeprefix("tool-"), dynamic, step)
