"""Reading a decision while it is being written: its text arrives in fragments cut anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

SPACE: Final = " \t\r\n"


class JsonValue:
    """Passes one JSON value on as it is written, and knows where it ends."""

    def __init__(self) -> None:
        self.closed = False
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._begun = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return (the value's text, the rest after it)."""
        for position, character in enumerate(text):
            if self._ends_before(character):
                self.closed = True
                return text[:position], text[position:]
            self._take(character)
            if self.closed:
                return text[: position + 1], text[position + 1 :]
        return text, ""

    def _ends_before(self, character: str) -> bool:
        """A number or a word has no sign of its own at its end."""
        return self._begun and self._depth == 0 and not self._in_string and character in ",:}" + SPACE

    def _take(self, character: str) -> None:
        self._begun = self._begun or character not in SPACE
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif character == "\\":
                self._escaped = True
            elif character == '"':
                self._in_string = False
                self.closed = self._depth == 0
        elif character == '"':
            self._in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
            self.closed = self._depth == 0


@dataclass(frozen=True)
class ToolNamed:
    """The model chose this tool."""

    name: str


@dataclass(frozen=True)
class ArgumentsGrew:
    """A further piece of the arguments, as JSON text."""

    text: str


DecisionEvent = ToolNamed | ArgumentsGrew


class DecisionReader:
    """Reads `{"tool": …, "arguments": …}` or `{"tool": <no_tool>}` as it grows."""

    def __init__(self, no_tool: str) -> None:
        self.no_tool = no_tool
        self.tool: str | None = None
        self.complete = False
        self._key: str | None = None
        self._value: JsonValue | None = None
        self._written = ""

    def feed(self, text: str) -> list[DecisionEvent]:
        """Return what `text` adds; neighbouring pieces of one kind may come as several events."""
        events: list[DecisionEvent] = []
        while text and not self.complete:
            if self._value is not None:
                text = self._read_value(text, events)
            elif self._key is None and text[0] == "}":
                self.complete = True
            elif text[0] in ",:" + SPACE or (self._key is None and text[0] == "{"):
                text = text[1:]
            else:
                self._value, self._written = JsonValue(), ""
        return events

    def _read_value(self, text: str, events: list[DecisionEvent]) -> str:
        """Take a key, or the value of the key before."""
        assert self._value is not None
        piece, rest = self._value.feed(text)
        if self._key == "arguments":
            if piece:
                events.append(ArgumentsGrew(piece))
        else:
            self._written += piece
        if self._value.closed:
            self._close(events)
        return rest

    def _close(self, events: list[DecisionEvent]) -> None:
        self._value = None
        if self._key is None:
            self._key = json.loads(self._written)
            return
        if self._key == "tool":
            name = json.loads(self._written)
            if name != self.no_tool:
                self.tool = name
                events.append(ToolNamed(name))
        self._key = None
