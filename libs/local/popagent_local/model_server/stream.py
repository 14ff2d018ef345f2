"""Reading a decision while it is being written: its text arrives in fragments cut anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SPACE: Final = " \t\r\n"
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
REPLACEMENT: Final = "\ufffd"


class StringDecoder:
    """Decodes the inside of a JSON string; what is not complete yet (an escape, half a surrogate pair) waits."""

    def __init__(self) -> None:
        self.closed = False
        self._held = ""
        self._high: int | None = None

    def feed(self, text: str) -> tuple[str, str]:
        """Return (decoded text, the rest after the closing quote)."""
        out: list[str] = []
        position = 0
        while position < len(text) and not self.closed:
            character = text[position]
            position += 1
            if self._held:
                self._held += character
                out.append(self._escape())
            elif character == "\\":
                self._held = character
            elif character == '"':
                out.append(self._lone())
                self.closed = True
            else:
                out.append(self._lone() + character)
        return "".join(out), text[position:]

    def _escape(self) -> str:
        kind = self._held[1]
        if kind != "u":
            self._held = ""
            return self._lone() + ESCAPES.get(kind, kind)
        if len(self._held) < 6:
            return ""
        digits, self._held = self._held[2:], ""
        try:
            unit = int(digits, 16)
        except ValueError:
            return self._lone() + REPLACEMENT
        if 0xDC00 <= unit <= 0xDFFF:
            if self._high is None:
                return REPLACEMENT
            pair, self._high = 0x10000 + ((self._high - 0xD800) << 10) + (unit - 0xDC00), None
            return chr(pair)
        before = self._lone()
        if 0xD800 <= unit <= 0xDBFF:
            self._high = unit
            return before
        return before + chr(unit)

    def _lone(self) -> str:
        """Return the sign for a high surrogate that nothing followed, if there is one."""
        if self._high is None:
            return ""
        self._high = None
        return REPLACEMENT


class RawValue:
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
        return self._begun and self._depth == 0 and not self._in_string and character in ",}" + SPACE

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


@dataclass(frozen=True)
class AnswerGrew:
    """A further piece of the answer."""

    text: str


DecisionEvent = ToolNamed | ArgumentsGrew | AnswerGrew


class DecisionReader:
    """Reads `{"tool": …, "arguments": …}` or `{"tool": <no_tool>, "answer": …}` as it grows.

    With `raw_answer` the answer is JSON of its own and is passed on as it is written.
    """

    def __init__(self, no_tool: str, *, raw_answer: bool = False) -> None:
        self.no_tool = no_tool
        self.raw_answer = raw_answer
        self.tool: str | None = None
        self.complete = False
        self._key: str | None = None
        self._value: StringDecoder | RawValue | None = None
        self._key_reader: StringDecoder | None = None
        self._name = ""

    def feed(self, text: str) -> list[DecisionEvent]:
        """Return what `text` adds; neighbouring pieces of one kind may come as several events."""
        events: list[DecisionEvent] = []
        while text and not self.complete:
            if self._key_reader is not None:
                text = self._read_key(text)
            elif self._value is not None:
                text = self._read_value(text, events)
            else:
                text = self._read_between(text)
        return events

    def _read_key(self, text: str) -> str:
        assert self._key_reader is not None
        more, rest = self._key_reader.feed(text)
        self._key = (self._key or "") + more
        if self._key_reader.closed:
            self._key_reader = None
        return rest

    def _read_between(self, text: str) -> str:
        """Take one sign of the outer object: what opens a key, a value or ends the whole."""
        sign, rest = text[0], text[1:]
        if sign == "}":
            self.complete = True
        elif self._key is None:
            if sign == '"':
                self._key, self._key_reader = "", StringDecoder()
        elif sign not in SPACE + ":":
            is_text = sign == '"' and (self._key == "tool" or (self._key == "answer" and not self.raw_answer))
            self._value = StringDecoder() if is_text else RawValue()
            return rest if is_text else text
        return rest

    def _read_value(self, text: str, events: list[DecisionEvent]) -> str:
        assert self._value is not None
        piece, rest = self._value.feed(text)
        if self._key == "tool":
            self._name += piece
            if self._value.closed and self._name != self.no_tool:
                self.tool = self._name
                events.append(ToolNamed(self._name))
        elif piece and self._key == "arguments":
            events.append(ArgumentsGrew(piece))
        elif piece and self._key == "answer":
            events.append(AnswerGrew(piece))
        if self._value.closed:
            self._key, self._value = None, None
        return rest
