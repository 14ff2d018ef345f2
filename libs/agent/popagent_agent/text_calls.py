"""Tool calls that a model wrote as text: in tags, as a function element, as JSON, fenced or not.

They count only where the whole answer is nothing else and every tool exists: prose and quoted files call nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal

from popagent_agent.argument_repair import lenient_object, parsed_at, without_trailing_commas
from popagent_kit import json
from popagent_models.text_tools import CLOSE_TAG, OPEN_TAG

Judgement = Literal["text", "undecided", "call"]

NAME_KEYS: Final = ("name", "tool", "tool_name", "function")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input")
OTHER_KEYS: Final = frozenset({"id", "type", "index"})
MOST_CALLS: Final = 128
# A beginning that is longer and still says nothing is text.
LONGEST_BEGINNING: Final = 1_000
OPEN_FUNCTION: Final = "<function="
CLOSE_FUNCTION: Final = "</function>"
OPEN_PARAMETER: Final = "<parameter="
CLOSE_PARAMETER: Final = "</parameter>"
FENCE: Final = "```"
LANGUAGES: Final = ("", "json", "xml", "tool_call", "tool_calls", "tool_code")
_FENCE_LINE: Final = re.compile(r"```([a-z_]*)[ \t]*\r?\n")
_FENCE_BEGUN: Final = re.compile(r"`{1,2}|```([a-z_]*)[ \t]*\r?")
_FIRST_KEY: Final = re.compile(r'\{\s*"([a-z_]*)"\s*:\s*')
_FIRST_KEY_BEGUN: Final = re.compile(r'\{\s*("([a-z_]*)("\s*)?)?')
_NAME: Final = re.compile(r'"([^"]*)("?)')
_BLANK: Final = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call as it stood in the text; `arguments` is JSON."""

    name: str
    arguments: str


class TextCallWatch:
    """Holds text back while it may still become calls of the tools `names`, and not one character longer."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""
        self._pieces: list[str] = []
        self._judgement: Judgement = "undecided"

    def feed(self, text: str) -> str:
        """Return what of the text so far can be shown now."""
        if self._judgement == "text":
            return text
        if self._judgement == "call":
            self._pieces.append(text)
            return ""
        self._held += text
        self._judgement = judged(self._held, self._names)
        if self._judgement == "call":
            self._pieces.append(self._held)
        return self.release() if self._judgement == "text" else ""

    def release(self) -> str:
        """Return what is held of an undecided beginning; half a call is dropped, and what follows is text."""
        held = self._held if self._judgement != "call" else ""
        self._held, self._judgement = "", "text"
        return held

    def end(self) -> tuple[str, list[TextCall]]:
        """Return at the end of the answer the text that was held back, or the calls that it is."""
        if self._judgement == "text":
            return "", []
        whole = "".join(self._pieces) or self._held
        calls = recovered(whole, self._names)
        return ("" if calls else whole), calls


def judged(beginning: str, names: Collection[str]) -> Judgement:
    """Tell what a text that begins so may be."""
    if not names or len(beginning) > LONGEST_BEGINNING:
        return "text"
    rest = beginning.lstrip()
    if rest.startswith("`"):
        line = _FENCE_LINE.match(rest)
        if line is None:
            return _judged_fence(rest)
        if line[1] not in LANGUAGES:
            return "text"
        rest = rest[line.end() :].lstrip()
    if rest.startswith(OPEN_TAG):
        rest = rest[len(OPEN_TAG) :].lstrip()
    if OPEN_TAG.startswith(rest) or OPEN_FUNCTION.startswith(rest):
        return "undecided"
    if rest.startswith(OPEN_FUNCTION):
        name, closed, _ = rest[len(OPEN_FUNCTION) :].partition(">")
        return _judged_name(name, names, complete=bool(closed))
    if rest.startswith("["):
        rest = rest[1:].lstrip()
    return _judged_object(rest, names)


def recovered(text: str, names: Collection[str]) -> list[TextCall]:
    """Return the calls that `text` consists of; none when anything else stands in it, or one tool does not exist."""
    calls = _Reader(text.strip(), names).whole()
    if not calls and OPEN_PARAMETER not in text:
        calls = _Reader(without_trailing_commas(text.strip()), names).whole()
    return calls


def _judged_fence(rest: str) -> Judgement:
    begun = _FENCE_BEGUN.fullmatch(rest)
    if begun is None:
        return "text"
    language = begun[1] or ""
    return "undecided" if any(known.startswith(language) for known in LANGUAGES) else "text"


def _judged_name(name: str, names: Collection[str], *, complete: bool) -> Judgement:
    if complete:
        return "call" if name in names else "text"
    return "undecided" if any(known.startswith(name) for known in names) else "text"


def _judged_object(rest: str, names: Collection[str]) -> Judgement:
    if not rest:
        return "undecided"
    key = _FIRST_KEY.match(rest)
    if key is None:
        begun = _FIRST_KEY_BEGUN.fullmatch(rest)
        known = (*NAME_KEYS, *ARGUMENT_KEYS, *OTHER_KEYS)
        return "undecided" if begun and any(each.startswith(begun[2] or "") for each in known) else "text"
    value = rest[key.end() :]
    if key[1] in ARGUMENT_KEYS or key[1] in OTHER_KEYS:
        return "call"  # its name follows somewhere; what is no call is text in the end
    if key[1] not in NAME_KEYS:
        return "text"
    if key[1] == "function" and value.startswith("{"):
        return _judged_object(value, names)
    name = _NAME.match(value)
    if name is None:
        return "text" if value else "undecided"
    return _judged_name(name[1], names, complete=bool(name[2]))


class _NoCallError(Exception):
    """Something stands there that is no call."""


class _Reader:
    """Reads a text from left to right as calls and nothing else; a closing mark may be missing at its very end."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self._text = text
        self._names = names
        self._at = 0
        self._calls: list[TextCall] = []

    def whole(self) -> list[TextCall]:
        try:
            while self._at < len(self._text):
                self._one()
                self._skip_blank()
        except _NoCallError:
            return []
        return self._calls

    def _one(self) -> None:
        line = _FENCE_LINE.match(self._text, self._at)
        if line is not None and line[1] in LANGUAGES:
            self._at = line.end()
            self._inside(FENCE)
        elif self._take(OPEN_TAG):
            self._inside(CLOSE_TAG)
        else:
            self._bare(tagged=False)

    def _inside(self, closing: str) -> None:
        """Read calls up to `closing`; only a fence may hold tags."""
        while not self._closed(closing):
            if closing == FENCE and self._take(OPEN_TAG):
                self._inside(CLOSE_TAG)
            else:
                self._bare(tagged=closing == CLOSE_TAG)

    def _bare(self, *, tagged: bool) -> None:
        self._skip_blank()
        if self._take(OPEN_FUNCTION):
            self._function()
            return
        if self._text[self._at : self._at + 1] not in {"{", "["}:
            raise _NoCallError
        self._json(self._value(), tagged=tagged)

    def _function(self) -> None:
        end = self._text.find(">", self._at)
        name, self._at = self._text[self._at : end], end + 1
        if end < 0 or name not in self._names:
            raise _NoCallError
        self._skip_blank()
        arguments: dict[str, Any] = {}
        if self._text.startswith("{", self._at):
            arguments = self._value()
        else:
            while self._take(OPEN_PARAMETER):
                self._parameter(arguments)
                self._skip_blank()
        if not self._closed(CLOSE_FUNCTION):
            raise _NoCallError
        self._add(name, arguments)

    def _parameter(self, arguments: dict[str, Any]) -> None:
        """Read up to the first closing mark behind which the element goes on or ends: a value may hold such a mark."""
        begin = self._text.find(">", self._at)
        end = self._text.find(CLOSE_PARAMETER, begin)
        while end >= 0 and not self._goes_on(end + len(CLOSE_PARAMETER)):
            end = self._text.find(CLOSE_PARAMETER, end + 1)
        if begin < 0 or end < 0:
            raise _NoCallError
        arguments[self._text[self._at : begin]] = self._text[begin + 1 : end].removeprefix("\n").removesuffix("\n")
        self._at = end + len(CLOSE_PARAMETER)

    def _goes_on(self, at: int) -> bool:
        blank = _BLANK.match(self._text, at)
        at = blank.end() if blank else at
        return at == len(self._text) or self._text.startswith((OPEN_PARAMETER, CLOSE_FUNCTION), at)

    def _json(self, value: Any, *, tagged: bool) -> None:
        if isinstance(value, list) and value:
            for each in value:
                self._object(each, tagged=tagged)
        else:
            self._object(value, tagged=tagged)

    def _object(self, value: Any, *, tagged: bool) -> None:
        if not isinstance(value, dict):
            raise _NoCallError
        if isinstance(value.get("function"), dict) and value.keys() <= {*OTHER_KEYS, "function"}:
            value = value["function"]
        names = [key for key in NAME_KEYS if key in value]
        given = [key for key in ARGUMENT_KEYS if key in value]
        # Inside of the tags it is a call even without arguments; elsewhere an object with a name may be anything.
        enough = len(names) == 1 and (len(given) == 1 or (tagged and not given))
        if not enough or not value.keys() <= {*names, *given, *OTHER_KEYS}:
            raise _NoCallError
        arguments = (value[given[0]] if given else None) or {}
        self._add(value[names[0]], lenient_object(arguments) if isinstance(arguments, str) else arguments)

    def _add(self, name: Any, arguments: Any) -> None:
        known = isinstance(name, str) and name in self._names
        if not known or not isinstance(arguments, dict) or len(self._calls) >= MOST_CALLS:
            raise _NoCallError
        try:
            self._calls.append(TextCall(name, json.dumps(arguments).decode()))
        except TypeError as error:  # half a surrogate pair, or a number beyond all bounds
            raise _NoCallError from error

    def _value(self) -> Any:
        found = parsed_at(self._text, self._at)
        if found is None:
            raise _NoCallError
        value, self._at = found
        return value

    def _closed(self, closing: str) -> bool:
        self._skip_blank()
        return self._at == len(self._text) or self._take(closing)

    def _take(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        if blank is not None:
            self._at = blank.end()
