"""What is wrong with a field, in our own words: bounds are told whole, whichever of them was passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from popagent_kit.ids import ID_PATTERN
from popagent_kit.text import one_line

LONGEST_FIELD: Final = 120
LONGEST_REASON: Final = 300

# Error type of the validator → what stands behind the field's name.
_PLAIN: Final = {
    "missing": "is required",
    "extra_forbidden": "is not accepted here",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}
# How the validator marks that a name of a mapping is wrong and not its value.
_NAME: Final = "[key]"
_RANGE: Final = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_LENGTH: Final = frozenset({"string_too_short", "string_too_long", "too_short", "too_long"})


@dataclass
class _Bounds:
    """What the contract says of one value; filled from its annotations."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None

    def take(self, metadata: Sequence[object]) -> None:
        for item in metadata:
            if isinstance(item, FieldInfo):
                self.take(item.metadata)
                continue
            for bound in fields(self):
                value = getattr(item, bound.name, None)
                if value is not None and not callable(value):
                    setattr(self, bound.name, value)


def explained(
    detail: Mapping[str, Any], model: Any = None, *, below: Sequence[int | str] = (), whole: str = "the body"
) -> tuple[str | None, str]:
    """Return the dotted name of the field that `detail` speaks of, and a sentence for a person.

    Args:
        detail: One error of a pydantic ValidationError.
        model: The type that was validated; without it only the bound that was passed can be told.
        below: Where the model itself lies in what the client sent.
        whole: What a client calls the value when no field of it is to blame.
    """
    location = (*below, *detail["loc"])
    reason = _reason(detail, _bounds_at(model, detail["loc"]))
    if _is_of_a_name(detail):
        field = _dotted(location[:-2])
        return field, f"{field or whole}: the name “{one_line(str(location[-2]), LONGEST_FIELD)}” {reason}"
    field = _dotted(location)
    return field, f"{field or whole} {reason}"


def _is_of_a_name(detail: Mapping[str, Any]) -> bool:
    """Tell whether a name is wrong that the client gave to a value, where it may choose one."""
    location = detail["loc"]
    return len(location) > 1 and location[-1] == _NAME and detail["type"] != "extra_forbidden"


def _dotted(location: Sequence[int | str]) -> str | None:
    return one_line(".".join(map(str, location)), LONGEST_FIELD) or None


def _reason(detail: Mapping[str, Any], bounds: _Bounds) -> str:
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in {"string_pattern_mismatch", "string_too_long"} and ID_PATTERN in (
        bounds.pattern,
        context.get("pattern"),
    ):
        return "must be an id: 1 to 64 letters, digits, - or _"
    if kind in _RANGE or kind == "int_parsing_size":
        bounds.take([_Passed(context)])
        return _range(bounds)
    if kind in _LENGTH:
        bounds.take([_Passed(context)])
        return _length(bounds, "items" if _is_list(detail) else "characters")
    if kind in {"literal_error", "enum"} and "expected" in context:
        return f"must be {one_line(str(context['expected']), LONGEST_REASON)}"
    if kind in {"value_error", "assertion_error"} and "error" in context:
        return one_line(str(context["error"]), LONGEST_REASON)
    return "has a value that is not accepted"


class _Passed:
    """The bound that was passed, as the error itself tells it."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        self.__dict__.update(context)


def _range(bounds: _Bounds) -> str:
    if bounds.ge is not None and bounds.le is not None:
        return f"must be between {_number(bounds.ge)} and {_number(bounds.le)}"
    limits = [
        f"{words} {_number(value)}"
        for words, value in (
            ("at least", bounds.ge),
            ("more than", bounds.gt),
            ("at most", bounds.le),
            ("less than", bounds.lt),
        )
        if value is not None
    ]
    return f"must be {' and '.join(limits)}" if limits else "is too large a number"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def _length(bounds: _Bounds, unit: str) -> str:
    least, most = bounds.min_length or 0, bounds.max_length
    if most is None:
        return f"must have at least {least:,} {unit if least != 1 else unit.removesuffix('s')}"
    return f"must have between {least:,} and {most:,} {unit}" if least else f"must have at most {most:,} {unit}"


def _is_list(detail: Mapping[str, Any]) -> bool:
    if "input" in detail:
        return not isinstance(detail["input"], str)
    return (detail.get("ctx") or {}).get("field_type") == "List"


def _bounds_at(model: Any, location: Sequence[int | str]) -> _Bounds:
    """Return the bounds of the value at `location`; none where the way there cannot be followed."""
    bounds, annotation = _Bounds(), model
    for step in location:
        bounds = _Bounds()
        found = _step_into(_alternatives(annotation, []), step)
        if found is None:
            return bounds
        annotation, notes = found
        metadata = [*notes]
        _alternatives(annotation, metadata)
        bounds.take(metadata)
    return bounds


def _step_into(candidates: Sequence[Any], step: int | str) -> tuple[Any, Sequence[object]] | None:
    for candidate in candidates:
        if isinstance(step, int) and get_origin(candidate) in {list, tuple}:
            return get_args(candidate)[0], ()
        if isinstance(step, str) and get_origin(candidate) is dict:
            return get_args(candidate)[1], ()
        if isinstance(step, str) and isinstance(candidate, type) and issubclass(candidate, BaseModel):
            for name, field in candidate.model_fields.items():
                if step in (field.alias, name):
                    return field.annotation, field.metadata
    return None


def _alternatives(annotation: Any, metadata: list[object]) -> list[Any]:
    """Return the types a value may have; what stands in `Annotated` on the way is added to `metadata`."""
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        metadata.extend(notes)
        return _alternatives(inner, metadata)
    if get_origin(annotation) in {Union, UnionType}:
        return [found for each in get_args(annotation) for found in _alternatives(each, metadata)]
    return [annotation]
