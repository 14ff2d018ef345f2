"""The value of JSON text that is still growing, as the official client shows it while arguments stream."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from popagent_uistream.chunks import MAX_DEPTH, UNSET, ChunkError, refuse_forbidden_keys

# A string stops before a dangling escape and before the first half of a surrogate pair.
_HEX: Final = "[0-9a-fA-F]"
_ESCAPE: Final = rf'\\["\\/bfnrt]|\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}|\\u(?![dD][89a-fA-F]){_HEX}{{4}}'
_TOKEN: Final = re.compile(
    rf"""\s*(?:
    (?P<string>"[^"\\]*(?:(?:{_ESCAPE})[^"\\]*)*) (?P<closed>"?)
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    | (?P<literal>t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?)
    | (?P<mark>[{{}}\[\],:])
    )""",
    re.VERBOSE,
)
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}
_CLOSERS: Final = {"{": "}", "[": "]"}


def parse_partial(text: str) -> Any:
    """Return the value of the longest prefix that can be completed to JSON, or UNSET when there is none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            value = orjson.loads(_completed(text))
        except orjson.JSONDecodeError:
            return UNSET
    return UNSET if _is_refused(value) else value


def _completed(text: str) -> str:
    """Return the prefix up to the last value that stands, with what is open after it closed."""
    closers: list[str] = []  # whatever changes it is itself kept, so at the end it belongs to `kept`
    position = kept = 0
    tail = ""
    in_key = False
    while len(closers) <= MAX_DEPTH and (match := _TOKEN.match(text, position)):
        position = match.end()
        mark = match["mark"]
        cut_string = match["string"] is not None and not match["closed"]
        cut_literal = match["literal"] is not None and match["literal"] not in _LITERALS.values()
        if mark in {",", ":"}:
            in_key = mark == "," and closers[-1:] == ["}"]
            continue
        if cut_literal and position < len(text):
            break
        if mark in _CLOSERS:
            closers.append(_CLOSERS[mark])
        elif mark and closers[-1:] != [mark]:
            break
        elif mark:
            closers.pop()
        if mark or not in_key:
            kept = position
            tail = '"' if cut_string else _LITERALS[match["literal"][0]][len(match["literal"]) :] if cut_literal else ""
            in_key = mark == "{"
        if cut_string or not closers:
            break
    return text[:kept] + tail + "".join(reversed(closers))


def _is_refused(value: Any) -> bool:
    """Tell whether the value is what a chunk may not carry, or deeper than a message can be stored."""
    level = [value]
    for _ in range(MAX_DEPTH):
        try:
            for item in level:
                if isinstance(item, dict):
                    refuse_forbidden_keys(item)
        except ChunkError:
            return True
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
