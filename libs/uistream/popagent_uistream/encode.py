"""Chunks as server-sent events."""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from popagent_uistream.chunks import Chunk, ChunkError

HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
DONE: Final = b"data: [DONE]\n\n"
# A comment: a named event would be parsed as a chunk and rejected by the official client.
HEARTBEAT: Final = b": ping\n\n"


def encode(chunk: Chunk) -> bytes:
    """Return the chunk as one event.

    Raises:
        ChunkError: It holds NaN or infinity, or something that JSON cannot hold.
    """
    try:
        payload = orjson.dumps(chunk)
    except TypeError as error:
        raise ChunkError(f"{chunk.get('type')}: {error}") from error
    # orjson writes null for NaN, which the client takes for a value; without a null there was no NaN.
    if b"null" in payload and _holds_non_finite(chunk):
        raise ChunkError(f"{chunk.get('type')}: NaN and infinity cannot travel in a chunk")
    return b"data: " + payload + b"\n\n"


def encode_all(chunks: list[Chunk]) -> bytes:
    """Return the chunks as consecutive events."""
    return b"".join(map(encode, chunks))


def _holds_non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_holds_non_finite, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_non_finite, value))
    return False
