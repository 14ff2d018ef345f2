"""AsyncAPI 3 of the bus: one channel a subject, one operation a message."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from popagent_proto.base import Event, Failure, Message, Request
from popagent_proto.export.registry import messages, replies

REF = "#/components/schemas/{model}"


def document(version: str) -> dict[str, Any]:
    """Return the AsyncAPI document."""
    declared = messages()
    shapes: list[type[BaseModel]] = [*declared, *replies(), Failure]
    _, schema = models_json_schema([(shape, "validation") for shape in shapes], ref_template=REF)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "popagent",
            "version": version,
            "description": "Requests between the services (core NATS) and events for subscribers (JetStream EVENTS).",
        },
        "defaultContentType": "application/json",
        "channels": {_channel(message): _channel_of(message) for message in declared}
        | {
            f"{_channel(message)}.reply": _reply_channel(message.reply_type())
            for message in declared
            if issubclass(message, Request)
        },
        "operations": {message.__name__: _operation(message) for message in declared},
        "components": {
            "schemas": schema["$defs"],
            "messages": {
                shape.__name__: {"name": shape.__name__, "payload": {"$ref": REF.format(model=shape.__name__)}}
                for shape in shapes
            },
        },
    }


def _channel(message: type[Message]) -> str:
    return message.subject


def _message_refs(*shapes: type[BaseModel]) -> dict[str, Any]:
    return {shape.__name__: {"$ref": f"#/components/messages/{shape.__name__}"} for shape in shapes}


def _channel_of(message: type[Message]) -> dict[str, Any]:
    summary = (message.__doc__ or "").strip().splitlines()
    return {
        "address": message.subject,
        "summary": summary[0] if summary else "",
        "messages": _message_refs(message),
    }


def _reply_channel(reply: type[BaseModel]) -> dict[str, Any]:
    return {"address": None, "summary": "The inbox of the one who asked.", "messages": _message_refs(reply, Failure)}


def _pointer(channel: str) -> str:
    return channel.replace("~", "~0").replace("/", "~1")


def _operation(message: type[Message]) -> dict[str, Any]:
    owner, kind, _, _ = message.subject_parts()
    operation: dict[str, Any] = {
        "action": "send" if issubclass(message, Event) else "receive",
        "channel": {"$ref": f"#/channels/{_pointer(_channel(message))}"},
        "tags": [{"name": owner}, {"name": kind}],
    }
    if issubclass(message, Request):
        operation["reply"] = {"channel": {"$ref": f"#/channels/{_pointer(_channel(message))}.reply"}}
    return operation
