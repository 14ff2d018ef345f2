"""JSON schemas as a grammar can hold them: the decision that the model must write, and what callers send in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

# What every grammar compiler understands; the rest (descriptions, formats, free patterns) makes some of them refuse.
KEPT: Final = frozenset(
    (
        *("type", "properties", "required", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf"),
        *("additionalProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems"),
    )
)
SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
# A repetition is unrolled in the grammar: beyond this it costs more than it forbids.
MAX_REPEAT: Final = 64
MAX_DEPTH: Final = 12
# Free white space is read as a licence to pretty-print, which doubles the tokens of a call.
SPACING: Final = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
NO_TOOL: Final = "none"


def decision_schema(tools: Sequence[Mapping[str, Any]], *, may_answer: bool, no_tool: str = NO_TOOL) -> dict[str, Any]:
    """Return the schema of one decision: a call of one of `tools` (function objects), or `no_tool`, if allowed.

    There must be at least one branch.
    """
    branches = [_object(tool={"const": tool["name"]}, arguments=parameters_of(tool)) for tool in tools]
    if may_answer:
        branches.append(_object(tool={"const": no_tool}))
    return spaced(branches[0] if len(branches) == 1 else {"anyOf": branches})


def spaced(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` with the order to write no white space but one blank after commas and colons."""
    return {**schema, "x-guidance": SPACING}


def name_for_no_tool(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the word that stands for "no tool" beside these tools, which none of them bears."""
    taken = {tool["name"] for tool in tools}
    word = NO_TOOL
    while word in taken:
        word = f"{word}_"
    return word


def parameters_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a function object as a closed object schema; a tool without any takes `{}`."""
    narrowed = narrow(tool.get("parameters") or {})
    if not isinstance(narrowed.get("properties"), dict):
        return _object()
    narrowed["type"] = "object"
    narrowed.setdefault("additionalProperties", False)
    return narrowed


def narrow(schema: Any, root: Any = None, depth: int = 0) -> dict[str, Any]:
    """Return `schema` with only what the grammar compiler understands, local references put in place.

    What nests deeper than the limit, a recursive reference above all, becomes any object.
    """
    root = schema if root is None else root
    if not isinstance(schema, Mapping):
        return {}
    if depth > MAX_DEPTH:
        return {"type": "object"}
    if isinstance(schema.get("$ref"), str):
        return narrow(_resolve(root, schema["$ref"]), root, depth + 1)
    # In the order of the schema: the grammar writes keys in that order.
    kept = {key: _narrowed_value(key, value, root, depth) for key, value in schema.items() if key in KEPT}
    for bound in ("minItems", "maxItems"):
        if isinstance(kept.get(bound), int) and kept[bound] > MAX_REPEAT:
            del kept[bound]
    return kept


def _narrowed_value(key: str, value: Any, root: Any, depth: int) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: narrow(inner, root, depth + 1) for name, inner in value.items()}
    if key in SCHEMA_LISTS and isinstance(value, Sequence):
        return [narrow(inner, root, depth + 1) for inner in value]
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return narrow(value, root, depth + 1)
    return value


def _resolve(root: Any, reference: str) -> Any:
    found = root
    for name in reference.removeprefix("#").split("/")[1:]:
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if found is not None else {}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
