"""TypeScript types from JSON Schema; a construct that the contracts do not use is an error, not a guess."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from popagent_proto.base import Event
from popagent_proto.chat.settings import SEEDED, AgentRuntimePatch
from popagent_proto.export.registry import http_shapes, messages, replies

HEAD = "// Generated from proto/. Do not edit: change the contract, then run `make contracts`.\n"
PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
BOUNDS = ("minimum", "maximum", "minLength", "maxLength")
SETTING_FIELD = """/** What a form needs to know of one setting. */
export interface SettingField {
  meaning: string;
  /** What a new installation begins with. */
  default: string | number | null;
  nullable?: boolean;
  choices?: readonly string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

export const agentRuntimeFields: Readonly<Record<Exclude<keyof AgentRuntimePatch, "revision">, SettingField>> = {
"""


def document() -> str:
    """Return the types of everything that HTTP and the event stream carry."""
    events = [message for message in messages() if issubclass(message, Event)]
    shapes: list[type[BaseModel]] = [*replies(), *http_shapes(), *events]
    _, schema = models_json_schema([(shape, "validation") for shape in shapes], ref_template="{model}")
    # A field with a default may be left out of what is sent; what is received always has it.
    bodies = {name for name in schema["$defs"] if name.endswith(("Body", "Request", "Patch"))} - {"ErrorBody"}
    blocks = [HEAD]
    for name, definition in sorted(schema["$defs"].items()):
        sparse = "x-sparse" in definition
        blocks.append(_declaration(_name(name), definition, optional=sparse or name in bodies, nulls=not sparse))
    subjects = "".join(f'  "{event.subject}": {event.__name__};\n' for event in events)
    blocks.append(f"/** Payload of each event, by subject. */\nexport interface EventBySubject {{\n{subjects}}}\n")
    blocks.append(_setting_fields(schema["$defs"][AgentRuntimePatch.__name__]))
    return "\n".join(blocks)


def _setting_fields(patch: dict[str, Any]) -> str:
    """Return meaning, bounds and default of every runtime setting as a value, for the form that edits them."""
    rows = []
    for name, definition in patch["properties"].items():
        if SEEDED not in definition:
            continue
        options = definition.get("anyOf", [definition])
        values = [value for option in options for value in option.get("enum", [])]
        row: dict[str, Any] = {"meaning": definition["description"], "default": definition[SEEDED]}
        row |= {"nullable": True} if definition[SEEDED] is None else {}
        row |= {"choices": values} if values else {}
        for option in options:
            row |= {bound: option[bound] for bound in BOUNDS if bound in option}
        rows.append(f"  {name}: {json.dumps(row, ensure_ascii=False)},\n")
    return f"{SETTING_FIELD}{''.join(rows)}}};\n"


def _name(text: str) -> str:
    return re.sub(r"\W", "_", text)


def _declaration(name: str, schema: dict[str, Any], *, optional: bool, nulls: bool) -> str:
    comment = _comment(schema.get("description", ""), "")
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{comment}export type {name} = {_type(schema)};\n"
    required = set(schema.get("required", []))
    lines = []
    for field, definition in schema["properties"].items():
        mark = "?" if optional and field not in required else ""
        kind = _type(definition) if nulls else _type(definition).removesuffix(" | null")
        lines.append(f"{_comment(definition.get('description', ''), '  ')}  {field}{mark}: {kind};\n")
    return f"{comment}export interface {name} {{\n{''.join(lines)}}}\n"


def _comment(text: str, indent: str) -> str:
    first = " ".join(text.split()).replace("*/", "* /")
    return f"{indent}/** {first} */\n" if first else ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"])
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(_literal(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(option) for option in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        return f"Array<{_type(schema['items'])}>"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    if kind is None:
        return "unknown"
    if kind not in PRIMITIVES:
        raise ValueError(f"no TypeScript for {schema}")
    return PRIMITIVES[kind]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
