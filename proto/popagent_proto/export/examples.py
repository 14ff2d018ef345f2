"""Golden examples: one JSON a message and a reply, written once and never rewritten.

A contract that changes so that an old example no longer reads, or no longer says the same, breaks whoever still speaks
it. A new file is made for a new shape; an old one changes only by hand, with a new version of the subject.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from popagent_proto.export.registry import http_shapes, messages, replies

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def shapes() -> dict[str, type[BaseModel]]:
    """Return every shape that has a golden example, by file name."""
    found: dict[str, type[BaseModel]] = {message.subject: message for message in messages()}
    found.update({shape.__name__: shape for shape in [*replies(), *http_shapes()]})
    return found


def example_of(shape: type[BaseModel]) -> dict[str, Any]:
    """Return an example with every field filled."""
    _, schema = models_json_schema([(shape, "validation")], ref_template="{model}")
    definitions = schema["$defs"]
    filled = _value(definitions[shape.__name__], definitions)
    return shape.model_validate(filled).model_dump(mode="json", by_alias=True)


def _value(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(definitions[schema["$ref"]], definitions)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], definitions)
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties")
        if properties is None:
            return {"key": _value(schema["additionalProperties"], definitions)} if _typed(schema) else {"key": "value"}
        return {name: _value(field, definitions) for name, field in properties.items()}
    if kind == "array":
        return [_value(schema["items"], definitions)]
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    return {"boolean": True, "string": _text(schema)}.get(str(kind), "value")


def _typed(schema: dict[str, Any]) -> bool:
    return isinstance(schema.get("additionalProperties"), dict)


def _text(schema: dict[str, Any]) -> str:
    if schema.get("format") == "date-time":
        return "2026-01-02T03:04:05.678Z"
    if schema.get("format") == "uri":
        return "https://example.org"
    if schema.get("pattern") == "^[0-9a-f]{32}$":
        return TRACE_ID
    if schema.get("pattern") == "^[0-9a-f]{64}$":
        return TRACE_ID * 2
    return "example"
