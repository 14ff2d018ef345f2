"""The one redaction: known values where they were resolved, shapes everywhere else (hostile input 35)."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

import orjson
import re2

from popagent_kit.text import excerpt
from popagent_telemetry.secret_shapes import (
    LONGEST_PREFIX,
    NAMES,
    SHAPES,
    NamedShape,
    Shape,
    Span,
    private_keys,
    unfinished_key,
)

REDACTED: Final = "[redacted]"
_MARK: Final = re.compile(r"\[redacted(?::[^\]\r\n]{1,120})?\]")

# Looked at behind the place where a text is cut.
LONGEST_SECRET: Final = 4_096
# Shorter values would blank ordinary words.
SHORTEST_SECRET: Final = 6
DEEPEST: Final = 32
# More than this of what is held back is looked at again only when it has grown by an eighth.
LONG_HELD: Final = 2_000

_ALONE: Final = re.compile(rf"(?:^|[_.-]|(?<=[a-z])(?=[A-Z])){NAMES}s?$|^authorization$|cookie$", re.I)

# One linear pass that answers "no" for most texts; forty substring searches cost four to twenty times as much. A set
# tells no places, for which an expression of this library takes five times as long as for the pass over a short text.
_SUSPECT: Final = re2.Set.SearchSet()
_SUSPECT.Add("(?i)" + "|".join(sorted({re2.escape(marker) for shape in SHAPES for marker in shape.markers})))
_SUSPECT.Compile()
# Of names up to this length it is remembered what they are.
LONGEST_NAME: Final = 100

_known: dict[str, str] = {}


def register_secret(value: str | None, name: str = "secret") -> None:
    """Make every later `redact` replace `value` by `[redacted:name]`; values under six characters are not taken.

    So it is wherever the value stands as a part of JSON or of a URL.
    """
    text = (value or "").strip()
    in_json = (orjson.dumps(text).decode()[1:-1], json.dumps(text)[1:-1])
    for form in {text, *in_json, quote(text, safe=""), unquote(text)}:
        if len(form) >= SHORTEST_SECRET:
            _known[form] = f"[redacted:{name}]"
            _field.cache_clear()


def secrets_registered() -> int:
    """Return how many forms of values are known; what was without credentials is so until this number grows."""
    return len(_known)


def redact(text: str) -> str:
    """Return `text` without credentials: registered values, then keys, tokens, private keys, URL passwords."""
    found = _registered(text) if _known else []
    if _SUSPECT.Match(text) is not None:
        found += _shaped(text, _suspected(text))
    return _without(text, _merged(found), 0, len(text)) if found else text


def cut_redacted(text: str, limit: int) -> str:
    """Return `text` cut to `limit` characters, redacted before it is cut, since half a secret is not recognised."""
    return text if len(text) <= limit else excerpt(redact(text[: limit + LONGEST_SECRET]), limit)


def marks_in(text: str) -> int:
    """Return how many of our marks stand in a text, those with a name too."""
    return len(_MARK.findall(text))


def without_marks(text: str) -> str:
    """Return a text with a blank in place of each of our marks, those with a name too."""
    return _MARK.sub(" ", text)


def without_private_keys(content: bytes) -> bytes:
    """Return a file's content with every line of a private key redacted, for those who then show single lines of it.

    The number of lines stays the same.
    """
    if b"PRIVATE KEY" not in content:
        return content
    text = content.decode("latin-1")
    pieces, done = [], 0
    for start, end in private_keys(text):
        pieces += [text[done:start], "\n".join([REDACTED] * (text.count("\n", start, end) + 1))]
        done = end
    return "".join([*pieces, text[done:]]).encode("latin-1")


class StreamRedactor:
    """Redacts a text that comes in pieces: what it returns, joined, is the text as `redact` would return it.

    Only what may be, or become, a credential is held back until it is known.
    """

    def __init__(self) -> None:
        self._seen = ""
        self._held: list[str] = []
        self._size = 0
        self._look_again_at = 0

    def feed(self, text: str) -> str:
        """Return what of the text so far can be shown now."""
        self._held.append(text)
        self._size += len(text)
        if self._size < self._look_again_at:
            return ""
        return self._released(at_end=False)

    def end(self) -> str:
        """Return the rest; the next piece begins another text."""
        rest = self._released(at_end=True) if self._size else ""
        self._seen = ""
        return rest

    def _released(self, *, at_end: bool) -> str:
        text, begin = self._seen + "".join(self._held), len(self._seen)
        shapes = _suspected(text) if _SUSPECT.Match(text) is not None else []
        hold = len(text) if at_end else max(begin, _settled(text, shapes))
        found = _merged([*_registered(text), *_shaped(text, shapes)])
        # What reaches over the end of what is shown now is decided later.
        hold = next((start for start, end, _ in found if start < hold < end), hold)
        shown = _without(text, found, begin, hold) if found else text[begin:hold]
        # No shape goes on over the end of a line, but for a private key, of which all is held.
        self._seen = text[max(0, hold - LONGEST_PREFIX, text.rfind("\n", 0, hold)) : hold]
        self._held = [text[hold:]]
        self._size = len(text) - hold
        self._look_again_at = self._size + self._size // 8 if self._size > LONG_HELD else 0
        return shown


def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a credential (`apiKey`, `db_password`; not `inputTokens`)."""
    return _ALONE.search(name) is not None and not name.lower().endswith("tokens")


@functools.lru_cache(maxsize=1_024)
def _field(name: str) -> tuple[str, bool]:
    """Return the redacted name of a field, and whether it holds a credential; the same names come again and again."""
    return redact(name), is_secret_name(name)


def redact_value(value: Any, _depth: int = 0) -> Any:
    """Return a copy of a JSON-like value, redacted; the text under a secret-sounding key is replaced whole."""
    if isinstance(value, str):
        return redact(value)
    if _depth >= DEEPEST:
        return REDACTED
    if isinstance(value, Mapping):
        return dict(_redacted_item(key, item, _depth) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [redact_value(item, _depth + 1) for item in value]
    return value


def _redacted_item(key: Any, item: Any, depth: int) -> tuple[Any, Any]:
    if not isinstance(key, str):
        return key, redact_value(item, depth + 1)
    name, secret = _field(key) if len(key) <= LONGEST_NAME else (redact(key), is_secret_name(key))
    return name, REDACTED if secret and isinstance(item, str) and item else redact_value(item, depth + 1)


Replaced = tuple[int, int, str]
"""Where something stands, and what comes in its place."""


def _suspected(text: str) -> list[Shape | NamedShape]:
    lowered = text.lower()
    return [shape for shape in SHAPES if any(marker in lowered for marker in shape.markers)]


def _shaped(text: str, shapes: Iterable[Shape | NamedShape]) -> list[Replaced]:
    spans: list[Span] = [span for shape in shapes for span in shape.spans(text)]
    if "PRIVATE KEY" in text:
        spans += private_keys(text)
    return [(start, end, REDACTED) for start, end in spans]


def _registered(text: str) -> list[Replaced]:
    found = []
    for value, label in _known.items():
        at = text.find(value)
        while at >= 0:
            found.append((at, at + len(value), label))
            at = text.find(value, at + len(value))
    return found


def _merged(found: list[Replaced]) -> list[Replaced]:
    """Return them in order, those that overlap as one."""
    if len(found) < 2:
        return found
    merged: list[Replaced] = []
    for start, end, label in sorted(found, key=lambda each: (each[0], -each[1])):
        if merged and start < merged[-1][1]:
            begin, before, first = merged[-1]
            merged[-1] = (begin, max(before, end), first)
        else:
            merged.append((start, end, label))
    return merged


def _without(text: str, found: list[Replaced], begin: int, end: int) -> str:
    """Return `text[begin:end]` with what was found in it replaced."""
    if not found:
        return text[begin:end]
    pieces = []
    for start, stop, label in found:
        if stop <= begin or start >= end:
            continue
        pieces += [text[begin:start], label]
        begin = stop
    return "".join([*pieces, text[begin:end]])


def _settled(text: str, shapes: Iterable[Shape | NamedShape]) -> int:
    """Return up to where nothing that follows can change what is a credential."""
    settled = min((_registered_begins(text, value) for value in _ended_within(text)), default=len(text))
    for shape in shapes:
        settled = min(settled, _or_end(shape.unfinished(text), text))
    return min(settled, _or_end(unfinished_key(text), text)) if "PRIVATE KEY" in text else settled


def _or_end(place: int | None, text: str) -> int:
    return len(text) if place is None else place


def _ended_within(text: str) -> list[str]:
    """Return the known values of which `text` may end with a part: few have its last characters in a row."""
    last, last_two, last_three = text[-1:], text[-2:], text[-3:]
    return [value for value in _known if last_three in value or value.startswith((last, last_two))]


def _registered_begins(text: str, value: str) -> int:
    """Return where the end of `text` is the beginning of `value`, else the end."""
    at = text.find(value[0], max(0, len(text) - len(value) + 1))
    while at >= 0 and not value.startswith(text[at:]):
        at = text.find(value[0], at + 1)
    return len(text) if at < 0 else at
