"""Builders for every chunk of the AI SDK UI message stream, v6 set; a field that is not given is absent, never null.

The official client aborts the whole stream at the first chunk it rejects, so whatever it would reject is refused here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, get_args

Chunk: TypeAlias = dict[str, Any]
Json: TypeAlias = Any
Metadata: TypeAlias = Mapping[str, Any]
FinishReason: TypeAlias = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]

# The serializer stops at 254 levels; a chunk and the message around it need some of them.
MAX_DEPTH: Final = 200
_FINISH_REASONS: Final = frozenset(get_args(FinishReason))


class Unset(Enum):
    """The type of UNSET, so that null stays a value of its own."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
Optional: TypeAlias = Literal[Unset.UNSET]


class ChunkError(ValueError):
    """The value cannot travel in a chunk: the official client would reject it."""


def json_value(value: Json, depth: int = 0) -> Json:
    """Return `value` as plain JSON of our own; lone surrogates and NUL become U+FFFD.

    Raises:
        ChunkError: NaN or infinity, an integer beyond 64 bits, a key that is no text or that the client takes for
            prototype pollution, deeper than 200 levels, or not JSON at all.
    """
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ChunkError("an integer beyond 64 bits cannot travel in a chunk")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ChunkError("NaN and infinity cannot travel in a chunk")
        return float(value)
    if depth >= MAX_DEPTH:
        raise ChunkError(f"a value deeper than {MAX_DEPTH} levels cannot travel in a chunk")
    if isinstance(value, Mapping):
        refuse_forbidden_keys(value)
        return {json_value(key): json_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item, depth + 1) for item in value]
    raise ChunkError(f"a {type(value).__name__} cannot travel in a chunk")


def _text(value: str) -> str:
    if "\x00" in value:
        value = value.replace("\x00", "\ufffd")  # PostgreSQL's jsonb cannot hold NUL, and the message is stored there
    try:
        value.encode()
    except UnicodeEncodeError:  # no UTF-8, so no JSON; halves of one pair are put together
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def refuse_forbidden_keys(value: Mapping[Any, Any]) -> None:
    """Raise ChunkError when the client's parser would refuse this object (one level)."""
    for key in value:
        if not isinstance(key, str):
            raise ChunkError(f"a key must be text, not {type(key).__name__}")
    constructor = value.get("constructor")
    if "__proto__" in value or (isinstance(constructor, Mapping) and "prototype" in constructor):
        raise ChunkError("the official client refuses objects with a key __proto__ or constructor.prototype")


def _build(kind: str, texts: dict[str, str], **optional: Json) -> Chunk:
    chunk: Chunk = {"type": kind}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ChunkError(f"{kind}.{name} must be text")
        chunk[name] = _text(text)
    for name, value in optional.items():
        if value is UNSET or value is False:
            continue
        if not _fits(name, value):
            raise ChunkError(f"{kind}.{name} may be absent, but not null or a {type(value).__name__}")
        chunk[name] = json_value(value)
    return chunk


def _fits(name: str, value: Json) -> bool:
    if name == "providerMetadata":
        return isinstance(value, Mapping) and all(isinstance(item, Mapping) for item in value.values())
    if name.endswith("Metadata"):
        return isinstance(value, Mapping)
    return value is True or isinstance(value, str)


def start(*, message_id: str | Optional = UNSET, message_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Open the message; metadata is merged deeply over what the message has."""
    return _build("start", {}, messageId=message_id, messageMetadata=message_metadata)


def start_step() -> Chunk:
    """Open a step: one model call and its tool calls."""
    return {"type": "start-step"}


def finish_step() -> Chunk:
    """Close the step."""
    return {"type": "finish-step"}


def text_start(part_id: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Open a text part; `part_id` must be unique among the open ones."""
    return _build("text-start", {"id": part_id}, providerMetadata=provider_metadata)


def text_delta(part_id: str, delta: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Grow an open text part."""
    return _build("text-delta", {"id": part_id, "delta": delta}, providerMetadata=provider_metadata)


def text_end(part_id: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Close a text part."""
    return _build("text-end", {"id": part_id}, providerMetadata=provider_metadata)


def reasoning_start(part_id: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Open a reasoning part; `part_id` must be unique among the open ones."""
    return _build("reasoning-start", {"id": part_id}, providerMetadata=provider_metadata)


def reasoning_delta(part_id: str, delta: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Grow an open reasoning part."""
    return _build("reasoning-delta", {"id": part_id, "delta": delta}, providerMetadata=provider_metadata)


def reasoning_end(part_id: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Close a reasoning part."""
    return _build("reasoning-end", {"id": part_id}, providerMetadata=provider_metadata)


def tool_input_start(
    tool_call_id: str,
    tool_name: str,
    *,
    dynamic: bool = False,
    title: str | Optional = UNSET,
    provider_executed: bool = False,
    provider_metadata: Metadata | Optional = UNSET,
    tool_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Open a tool call whose arguments follow as fragments; `dynamic` is for tools not of our own catalogue."""
    return _build(
        "tool-input-start",
        {"toolCallId": tool_call_id, "toolName": tool_name},
        dynamic=dynamic,
        title=title,
        providerExecuted=provider_executed,
        providerMetadata=provider_metadata,
        toolMetadata=tool_metadata,
    )


def tool_input_delta(tool_call_id: str, input_text_delta: str) -> Chunk:
    """Carry a raw fragment of the JSON text of the arguments."""
    return _build("tool-input-delta", {"toolCallId": tool_call_id, "inputTextDelta": input_text_delta})


def tool_input_available(
    tool_call_id: str,
    tool_name: str,
    tool_input: Json,
    *,
    dynamic: bool = False,
    title: str | Optional = UNSET,
    provider_executed: bool = False,
    provider_metadata: Metadata | Optional = UNSET,
    tool_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Give the parsed arguments; null is a value."""
    chunk = _build(
        "tool-input-available",
        {"toolCallId": tool_call_id, "toolName": tool_name},
        dynamic=dynamic,
        title=title,
        providerExecuted=provider_executed,
        providerMetadata=provider_metadata,
        toolMetadata=tool_metadata,
    )
    return chunk | {"input": json_value(tool_input)}


def tool_input_error(
    tool_call_id: str,
    tool_name: str,
    tool_input: Json,
    error_text: str,
    *,
    dynamic: bool = False,
    title: str | Optional = UNSET,
    provider_executed: bool = False,
    provider_metadata: Metadata | Optional = UNSET,
    tool_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Settle a call whose arguments were refused; `tool_input` is what came, the raw text when it was no JSON."""
    chunk = _build(
        "tool-input-error",
        {"toolCallId": tool_call_id, "toolName": tool_name, "errorText": error_text},
        dynamic=dynamic,
        title=title,
        providerExecuted=provider_executed,
        providerMetadata=provider_metadata,
        toolMetadata=tool_metadata,
    )
    return chunk | {"input": json_value(tool_input)}


def tool_output_available(
    tool_call_id: str,
    output: Json,
    *,
    preliminary: bool = False,
    dynamic: bool = False,
    provider_executed: bool = False,
    provider_metadata: Metadata | Optional = UNSET,
    tool_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Give the result, null included; a preliminary one is replaced by the next."""
    chunk = _build(
        "tool-output-available",
        {"toolCallId": tool_call_id},
        preliminary=preliminary,
        dynamic=dynamic,
        providerExecuted=provider_executed,
        providerMetadata=provider_metadata,
        toolMetadata=tool_metadata,
    )
    return chunk | {"output": json_value(output)}


def tool_output_error(
    tool_call_id: str,
    error_text: str,
    *,
    dynamic: bool = False,
    provider_executed: bool = False,
    provider_metadata: Metadata | Optional = UNSET,
    tool_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Settle a call that failed."""
    return _build(
        "tool-output-error",
        {"toolCallId": tool_call_id, "errorText": error_text},
        dynamic=dynamic,
        providerExecuted=provider_executed,
        providerMetadata=provider_metadata,
        toolMetadata=tool_metadata,
    )


def tool_output_denied(tool_call_id: str) -> Chunk:
    """Settle a call that a person refused."""
    return _build("tool-output-denied", {"toolCallId": tool_call_id})


def tool_approval_request(approval_id: str, tool_call_id: str) -> Chunk:
    """Ask a person before the call is carried out."""
    return _build("tool-approval-request", {"approvalId": approval_id, "toolCallId": tool_call_id})


def source_url(
    source_id: str,
    url: str,
    *,
    title: str | Optional = UNSET,
    provider_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Name a web page that the answer rests on."""
    return _build("source-url", {"sourceId": source_id, "url": url}, title=title, providerMetadata=provider_metadata)


def source_document(
    source_id: str,
    media_type: str,
    title: str,
    *,
    filename: str | Optional = UNSET,
    provider_metadata: Metadata | Optional = UNSET,
) -> Chunk:
    """Name a document that the answer rests on."""
    return _build(
        "source-document",
        {"sourceId": source_id, "mediaType": media_type, "title": title},
        filename=filename,
        providerMetadata=provider_metadata,
    )


def file(url: str, media_type: str, *, provider_metadata: Metadata | Optional = UNSET) -> Chunk:
    """Attach a file by http or data URL."""
    return _build("file", {"url": url, "mediaType": media_type}, providerMetadata=provider_metadata)


def data(name: str, value: Json, *, data_id: str | Optional = UNSET, transient: bool = False) -> Chunk:
    """Give a `data-<name>` part; the same name and id replace it, a transient one never enters the message."""
    if not name:
        raise ChunkError("a data chunk needs a name")
    return _build(f"data-{name}", {}, id=data_id, transient=transient) | {"data": json_value(value)}


def message_metadata(message_metadata: Metadata | None) -> Chunk:
    """Merge metadata deeply over what the message has; null changes nothing."""
    if message_metadata is not None and not isinstance(message_metadata, Mapping):
        raise ChunkError("message-metadata.messageMetadata must be an object or null")
    return {"type": "message-metadata", "messageMetadata": json_value(message_metadata)}


def finish(*, finish_reason: FinishReason | Optional = UNSET, message_metadata: Metadata | Optional = UNSET) -> Chunk:
    """End the message."""
    if finish_reason is not UNSET and finish_reason not in _FINISH_REASONS:
        raise ChunkError(f"finish.finishReason must be one of {', '.join(sorted(_FINISH_REASONS))}")
    return _build("finish", {}, finishReason=finish_reason, messageMetadata=message_metadata)


def abort(*, reason: str | Optional = UNSET) -> Chunk:
    """End the message because somebody stopped it."""
    return _build("abort", {}, reason=reason)


def error(error_text: str) -> Chunk:
    """End the message with a sentence that is shown to the person."""
    return _build("error", {"errorText": error_text})
