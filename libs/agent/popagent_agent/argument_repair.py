"""Arguments that a model got slightly wrong, put right where only one meaning is possible; everything else stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError

# Each round puts every wrong place right once; what is wrapped twice needs two.
MOST_ROUNDS: Final = 3
MOST_WRONG: Final = 32
# A text, or a comma with nothing but an end behind it.
_TEXT_OR_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s{0,1000}[}\]])', re.S)
_FENCED: Final = re.compile(r"```[a-zA-Z]{0,16}\s*\n(.*)\n\s*```", re.S)
# Models write a line's end into a text as it is.
_LENIENT: Final = json.JSONDecoder(strict=False)
_STRUCTURES: Final = frozenset({"dict_type", "list_type", "tuple_type", "set_type", "model_type"})
_WRAPPERS: Final = ("value", "text")
_NO_VALUE: Final = object()


def lenient_object(text: str) -> dict[str, Any] | None:
    """Return the one JSON object that `text` must mean: fenced, quoted as a text, or with a comma too many."""
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    value = _parsed(text)
    if isinstance(value, str):
        value = _parsed(value.strip())
    return value if isinstance(value, dict) else None


def without_trailing_commas(text: str) -> str:
    """Return JSON without the commas behind which something ends; commas inside of texts stay."""
    return _TEXT_OR_TRAILING_COMMA.sub(lambda found: "" if found[0] == "," else found[0], text)


def parsed_at(text: str, at: int) -> tuple[Any, int] | None:
    """Return the JSON value that begins at `at` and where it ends, None when there is none; lenient in texts."""
    try:
        return _LENIENT.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def repaired(arguments: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that `arguments` accepts when they can only be meant so, else `given` as it is."""
    tried = given
    for _ in range(MOST_ROUNDS):
        wrong = _problems(arguments, tried)
        if not wrong:
            return tried
        changed = _unwrapped(arguments, tried) or _put_right(tried, wrong)
        if changed is None:
            return given
        tried = changed
    return given if _problems(arguments, tried) else tried


def _parsed(text: str) -> Any:
    for candidate in (text, without_trailing_commas(text)):
        found = parsed_at(candidate, 0)
        if found is not None and found[1] == len(candidate):
            return found[0]
    return None


def _problems(arguments: type[BaseModel], given: dict[str, Any]) -> list[tuple[tuple[int | str, ...], str]]:
    try:
        arguments.model_validate(given)
    except ValidationError as error:
        return [(item["loc"], item["type"]) for item in error.errors(include_url=False, include_input=False)]
    return []


def _unwrapped(arguments: type[BaseModel], given: dict[str, Any]) -> dict[str, Any] | None:
    """Return what stands under the only key, when that is no argument and only arguments stand under it."""
    if len(given) != 1:
        return None
    [(name, inner)] = given.items()
    if isinstance(inner, str):
        inner = lenient_object(inner)
    known = arguments.model_fields.keys()
    if name in known or not isinstance(inner, dict) or not inner or not inner.keys() <= known:
        return None
    return inner


def _put_right(given: dict[str, Any], wrong: list[tuple[tuple[int | str, ...], str]]) -> dict[str, Any] | None:
    """Return a copy with every wrong value replaced by what it must mean, None when one means nothing else."""
    if len(wrong) > MOST_WRONG:
        return None
    changed = given
    for place, kind in wrong:
        value = _value_at(given, place)
        meant = _meant(value, kind, str(place[-1])) if place and value is not _NO_VALUE else _NO_VALUE
        if meant is _NO_VALUE:
            return None
        changed = _with(changed, place, meant)
    return changed


def _meant(value: Any, kind: str, name: str) -> Any:
    if isinstance(value, dict) and len(value) == 1 and kind not in _STRUCTURES:
        [(key, inner)] = value.items()
        return inner if key == name or key in _WRAPPERS else _NO_VALUE
    if isinstance(value, str) and kind in _STRUCTURES:
        inner = _parsed(value.strip())
        return inner if isinstance(inner, dict | list) else _NO_VALUE
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return _NO_VALUE


def _value_at(given: Any, place: tuple[int | str, ...]) -> Any:
    for step in place:
        known = range(len(given)) if isinstance(given, list) else given if isinstance(given, dict) else ()
        if step not in known:
            return _NO_VALUE  # a missing argument, or a branch of a union
        given = given[step]
    return given


def _with(given: Any, place: tuple[int | str, ...], value: Any) -> Any:
    if not place:
        return value
    step, rest = place[0], place[1:]
    pairs: Iterator[tuple[Any, Any]] = iter(given.items() if isinstance(given, dict) else enumerate(given))
    replaced = {key: _with(inner, rest, value) if key == step else inner for key, inner in pairs}
    return replaced if isinstance(given, dict) else list(replaced.values())
