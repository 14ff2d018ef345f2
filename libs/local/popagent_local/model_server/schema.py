"""JSON schemas as a grammar can hold them: the decision that the model must write, and what callers send in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

# What the grammar compiler understands; the rest (descriptions, formats, free patterns) would make it refuse or grow.
KEPT: Final = frozenset(
    {"type", "properties", "required", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf",
     "additionalProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
)  # fmt: skip
SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
# A repetition is unrolled in the grammar: beyond this it costs more than it forbids.
MAX_REPEAT: Final = 64
MAX_DEPTH: Final = 12
ANY_OBJECT: Final = {"type": "object"}


def decision_schema(tools: Sequence[Mapping[str, Any]], answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the schema of one decision: a call of one of `tools` (function objects), or an answer of schema `answer`.

    No answer is allowed when `answer` is None; there must be at least one branch.
    """
    branches = [_object(tool={"const": tool["name"]}, arguments=parameters_of(tool)) for tool in tools]
    if answer is not None:
        branches.append(_object(answer=dict(answer)))
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def parameters_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a function object as a closed object schema; a tool without any takes `{}`."""
    given = tool.get("parameters") or {}
    narrowed = narrow(given)
    if narrowed.get("type") != "object" and "properties" not in narrowed:
        return _object()
    narrowed.setdefault("properties", {})
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
        return dict(ANY_OBJECT)
    if isinstance(schema.get("$ref"), str):
        return narrow(_resolve(root, schema["$ref"]), root, depth + 1)
    kept: dict[str, Any] = {}
    for key in KEPT & schema.keys():
        kept[key] = _narrowed_value(key, schema[key], root, depth)
    for bound in ("minItems", "maxItems"):
        if isinstance(kept.get(bound), int) and kept[bound] > MAX_REPEAT:
            del kept[bound]
    # The grammar writes keys in the order of the schema; sets have none.
    return {key: kept[key] for key in schema if key in kept}


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
