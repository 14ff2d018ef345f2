"""Server-sent events back to chunks, whatever the pieces in which the bytes arrive."""

from __future__ import annotations

from typing import Final

import orjson

from popagent_uistream.chunks import Chunk

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class MalformedStreamError(ValueError):
    """The bytes are no UI message stream."""


class StreamParser:
    """Feeds on bytes; lines end with LF or CRLF. `done` is true once `[DONE]` was read."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.done = False
        self._max_event_bytes = max_event_bytes
        self._pending = bytearray()  # an unfinished line
        self._searched = 0  # bytes of it known to hold no line end
        self._data: list[bytes] = []  # data lines of an unfinished event
        self._data_bytes = 0
        self._at_start = True

    def feed(self, data: bytes) -> list[Chunk]:
        """Return the chunks that `data` completes.

        Raises:
            MalformedStreamError: An event that is no chunk, or one larger than `max_event_bytes`.
        """
        self._pending += data
        if self._at_start:
            if len(self._pending) < len(_BOM) and _BOM.startswith(self._pending):
                return []
            self._at_start = False
            if self._pending.startswith(_BOM):
                del self._pending[: len(_BOM)]
        chunks: list[Chunk] = []
        while (end := self._pending.find(b"\n", self._searched)) >= 0:
            line = bytes(self._pending[:end]).removesuffix(b"\r")
            del self._pending[: end + 1]
            self._searched = 0
            self._take(line, chunks)
        self._searched = len(self._pending)
        if self._searched + self._data_bytes > self._max_event_bytes:
            raise MalformedStreamError(f"an event is larger than {self._max_event_bytes} bytes")
        return chunks

    def _take(self, line: bytes, chunks: list[Chunk]) -> None:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":  # comments, ids and event names carry nothing for us
                self._data.append(value.removeprefix(b" "))
                self._data_bytes += len(value)
            return
        if not self._data:
            return
        payload = b"\n".join(self._data)
        self._data.clear()
        self._data_bytes = 0
        if payload == b"[DONE]":
            self.done = True
        else:
            chunks.append(_chunk(payload))


def parse(data: bytes) -> list[Chunk]:
    """Return the chunks of a whole stream, or of whole frames of one; an unfinished last event is dropped."""
    return StreamParser(max(len(data), 1)).feed(data)


def _chunk(payload: bytes) -> Chunk:
    try:
        chunk = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise MalformedStreamError(f"an event holds no JSON: {error}") from error
    if not isinstance(chunk, dict) or not isinstance(chunk.get("type"), str):
        raise MalformedStreamError("an event holds no object with a type")
    return chunk
