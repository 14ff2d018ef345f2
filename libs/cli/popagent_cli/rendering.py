"""Chunks as a person reads them; a stream that begins again after a cut repeats nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from popagent_cli.delegates import ACTIVITY, Delegates
from popagent_cli.printing import duration, size
from popagent_cli.safe_text import SafeText, one_safe_line
from popagent_cli.screen import Screen
from popagent_cli.transcript import ARGUMENT_CHARACTERS, call_label, failure, output_bytes
from popagent_uistream.chunks import Chunk

READING: Final = "reading"
# Shorter ones are the travel time of the chunks, or a call that was over before the stream was taken up again.
SHORTEST_SHOWN_MS: Final = 100


@dataclass
class _Piece:
    """A part of the message, the n-th of it in every stream of the same message."""

    at: int = 0
    """Characters of it in the present stream."""
    shown: int = 0
    """Characters of it that were shown, in whichever stream."""
    blank: bool = True
    text: SafeText = field(default_factory=SafeText)
    label: str = ""
    since: float | None = None
    settled: bool = False


class Rendering:
    """Shows text as it grows and each tool call as one line when it is over."""

    def __init__(self, screen: Screen, *, reasoning: bool = False) -> None:
        self._screen = screen
        self._shows_reasoning = reasoning
        self._pieces: list[_Piece] = []
        self._next = 0
        self._open: dict[tuple[str, str], _Piece] = {}
        self._calls: dict[str, _Piece] = {}
        self._delegates = Delegates(screen)

    def begin(self) -> None:
        """A stream of the message begins, from its start."""
        self._next = 0
        self._open.clear()
        self._calls.clear()
        for piece in self._pieces:
            piece.at = 0
        self._screen.waiting(READING)

    def take(self, chunk: Chunk) -> None:
        """Show what `chunk` adds to what was shown."""
        kind = chunk["type"]
        part, _, move = kind.partition("-")
        if kind == "start-step":
            self._calls.clear()  # models count their calls anew in every step
            self._screen.waiting(READING)
        elif part in {"text", "reasoning"}:
            self._grow(part, move, chunk)
        elif part == "tool":
            self._call(kind, chunk)
        elif kind == ACTIVITY:
            self._delegates.take(chunk)
            self._wait_for_calls()

    def _grow(self, part: str, move: str, chunk: Chunk) -> None:
        key = (part, chunk["id"])
        if move == "start":
            self._open[key] = self._piece()
        elif move == "delta":
            self._show(part, self._open[key], chunk["delta"])
        elif move == "end":
            self._end(part, self._open.pop(key))

    def _show(self, part: str, piece: _Piece, delta: str) -> None:
        known = max(0, piece.shown - piece.at)
        piece.at += len(delta)
        piece.shown = max(piece.shown, piece.at)
        fresh = piece.text.feed(delta[known:])
        if piece.blank:
            fresh = fresh.lstrip("\n")
            piece.blank = not fresh
        if part == "text":
            self._screen.text(fresh)
        elif self._shows_reasoning:
            self._screen.aside(fresh)
        else:
            self._screen.waiting("thinking")

    def _end(self, part: str, piece: _Piece) -> None:
        if piece.settled:  # in an earlier stream; by now a later text may be under way
            return
        piece.settled = True
        if part == "text" or self._shows_reasoning:
            self._screen.end_line()
        self._screen.waiting(READING)

    def _call(self, kind: str, chunk: Chunk) -> None:
        piece = self._calls.get(chunk["toolCallId"])
        if piece is None:
            piece = self._calls[chunk["toolCallId"]] = self._piece()
        if kind == "tool-input-start":
            piece.label = piece.label or one_safe_line(chunk["toolName"], ARGUMENT_CHARACTERS)
        elif kind == "tool-input-available":
            piece.label = call_label(chunk["toolName"], chunk["input"])
            piece.since = piece.since or time.monotonic()
        elif kind == "tool-input-error":
            piece.label = call_label(chunk["toolName"], chunk["input"])
            self._settle(piece, failure(chunk))
        elif kind == "tool-output-available" and not chunk.get("preliminary"):
            self._settle(piece, size(output_bytes(chunk["output"])), told=self._delegates.ended(chunk["toolCallId"]))
        elif kind == "tool-output-error":
            self._settle(piece, failure(chunk), told=self._delegates.ended(chunk["toolCallId"]))
        elif kind == "tool-output-denied":
            self._settle(piece, "was denied")
        self._wait_for_calls()

    def _wait_for_calls(self) -> None:
        running = [
            self._delegates.doing(call_id) or call.label for call_id, call in self._calls.items() if not call.settled
        ]
        self._screen.waiting(", ".join(running) or READING)

    def _settle(self, piece: _Piece, result: str, *, told: bool = False) -> None:
        """End a call, in a line of its own unless what was done for it has `told` of its end."""
        if piece.settled:
            return
        piece.settled = True
        if told:
            return
        took_ms = (time.monotonic() - piece.since) * 1_000 if piece.since is not None else 0.0
        took = f", {duration(took_ms)}" if took_ms >= SHORTEST_SHOWN_MS else ""
        self._screen.note(f"· {piece.label}  {result}{took}")

    def _piece(self) -> _Piece:
        if self._next == len(self._pieces):
            self._pieces.append(_Piece())
        self._next += 1
        return self._pieces[self._next - 1]


class Silence:
    """Shows only that something goes on; for output that programs read."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def begin(self) -> None:
        """A stream begins."""
        self._screen.waiting("answering")

    def take(self, chunk: Chunk) -> None:
        """Pass over it."""
