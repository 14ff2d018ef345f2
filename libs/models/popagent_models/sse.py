"""Reading a model server's body, whatever it chose to send: an event stream, one JSON object, or a mixture.

Asked for a stream, servers are seen to answer with JSON; asked for JSON, with a stream; they glue `[DONE]` onto JSON,
put plain text into data lines, repeat `[DONE]`, and report errors inside a stream that began with status 200.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from popagent_models.errors import ModelProviderError

LONGEST_LINE_BYTES: Final = 4 * 1024 * 1024
LONGEST_BODY_BYTES: Final = 64 * 1024 * 1024

Payload = dict[str, Any]

_DECODER: Final = json.JSONDecoder()
_BOM: Final = b"\xef\xbb\xbf"


class BodyReader:
    """Turns the bytes of one response into the JSON objects in it.

    An unparsable data line is skipped and counted in `skipped`, in `damaged` too when it began as JSON: then a piece
    of the answer is lost, and the caller decides whether that can be borne.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self.damaged = 0
        self.objects = 0
        self.done = False
        self.is_json = False
        self._decided = False
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._total_bytes = 0

    def feed(self, data: bytes) -> list[Payload]:
        """Return the objects that `data` completes.

        Raises:
            ModelProviderError: A line is longer than 4 MiB, or the body longer than 64 MiB.
        """
        self._total_bytes += len(data)
        if self._total_bytes > LONGEST_BODY_BYTES:
            raise ModelProviderError("The model server sent more than 64 MiB for one answer.")
        if not self._decided:
            data = data.lstrip() if not self._parts else data
            self._decide(data)
        if self.is_json or not self._decided or b"\n" not in data:
            self._hold(data)
            return []
        lines = data.split(b"\n")
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._held_bytes = 0
        self._hold(lines.pop())
        return self._objects(lines)

    def end(self) -> list[Payload]:
        """Return what the end of the body completes: a JSON body, or a last line without a line end."""
        rest = b"".join(self._parts)
        self._parts.clear()
        if not rest.strip():
            return []
        if self.is_json:
            found = self._json_objects(rest)
            self.objects += len(found)
            return found
        return self._objects(rest.split(b"\n"))

    def _hold(self, data: bytes) -> None:
        if data:
            self._parts.append(data)
            self._held_bytes += len(data)
            if self._held_bytes > LONGEST_LINE_BYTES and not self.is_json:
                raise ModelProviderError("The model server sent a line longer than 4 MiB.")

    def _decide(self, data: bytes) -> None:
        """Look at the first visible byte: a body that opens with a brace is JSON."""
        start = b"".join([*self._parts, data]).lstrip()
        if not start or _BOM.startswith(start):
            return
        self._decided = True
        self.is_json = start.removeprefix(_BOM).lstrip().startswith(b"{")

    def _objects(self, lines: list[bytes]) -> list[Payload]:
        found: list[Payload] = []
        for line in lines:
            text = line[5:].strip() if line.startswith(b"data:") else self._unusual(line)
            if not text:
                continue
            if text == b"[DONE]":
                self.done = True
                continue
            value = parse(text)
            if isinstance(value, dict):
                found.append(value)
            else:
                self.skipped += 1
                self.damaged += text.startswith(b"{")
        self.objects += len(found)
        return found

    def _unusual(self, line: bytes) -> bytes:
        """Return the payload of a line that is not plainly `data:`; empty when it carries none."""
        text = line.strip().removeprefix(_BOM)
        if not text or text.startswith((b":", b"event:", b"id:", b"retry:")):
            return b""
        if text.startswith(b"data:"):
            return text[5:].strip()
        if text.startswith(b"error:"):
            # llama.cpp reports a failure as a field of its own.
            detail = parse(text[6:].strip())
            return orjson.dumps({"error": detail if isinstance(detail, dict) and detail else {"message": "unreadable"}})
        return text

    def _json_objects(self, body: bytes) -> list[Payload]:
        """Return the objects at the start of a JSON body; what is glued on behind them is ignored."""
        text = body.removeprefix(_BOM).decode("utf-8", "replace").lstrip()
        found: list[Payload] = []
        while text.startswith("{"):
            try:
                value, end = _DECODER.raw_decode(text)
            except (ValueError, RecursionError):
                self.skipped += 1
                break
            found.append(value)
            text = text[end:].lstrip()
        self.done = bool(found)
        return found


def parse(text: bytes) -> Any:
    """Return the JSON value, None when it is not JSON.

    The second parser takes what the fast one refuses: half a surrogate pair, when a server splits an emoji.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if b"\\u" not in text:
            return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
