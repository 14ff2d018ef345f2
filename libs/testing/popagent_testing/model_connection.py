"""HTTP/1.1 connection of the scripted model server: a protocol without framework, fast and able to misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

import httptools

REASONS: Final = {200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class Request:
    """A complete request; header names are lower-case."""

    __slots__ = ("body", "headers", "method", "path")

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body


Later = Coroutine[Any, Any, None] | None  # what is left to do after the handler returned
Handler = Callable[["Connection", Request], Later]


class Connection(asyncio.Protocol):
    """Parses requests, hands each to `handle`, and writes whatever the script wants, well-formed or not.

    `handle` answers at once and returns None, or returns a coroutine that answers; the client's leaving cancels it.
    """

    def __init__(self, handle: Handler) -> None:
        self.handle = handle
        self.parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None
        self.chunked = False
        self.on_message_begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel an answer that nobody waits for any more."""
        self.transport = None
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse; a request that is not HTTP closes the connection."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_message_begin(self) -> None:
        """Start a new request."""
        self.url = b""
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        """Collect the request target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect one header."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Answer `Expect: 100-continue`, which curl sends with larger bodies."""
        if self.headers.get("expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect a piece of the body."""
        self.parts.append(body)

    def on_message_complete(self) -> None:
        """Hand the request on."""
        path = self.url.decode("latin-1").partition("?")[0]
        method = self.parser.get_method().decode("latin-1")
        answer = self.handle(self, Request(method, path, self.headers, b"".join(self.parts)))
        if answer is not None:
            self.task = asyncio.get_running_loop().create_task(answer)

    @property
    def open(self) -> bool:
        """Whether the client is still there."""
        return self.transport is not None

    def write(self, data: bytes) -> None:
        """Write raw bytes; nothing happens when the client has left."""
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """Send what is buffered and close, without ending a chunked body."""
        if self.transport is not None:
            self.transport.close()

    def respond(
        self, status: int, body: bytes, content_type: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        """Write a complete response."""
        self.write(head(status, content_type, {"content-length": str(len(body)), **(headers or {})}) + body)

    def respond_stream(self, body: bytes, content_type: str) -> None:
        """Write a complete chunked response in one piece."""
        start = head(200, content_type, {"transfer-encoding": "chunked"})
        self.write(b"%b%x\r\n%b\r\n0\r\n\r\n" % (start, len(body), body))

    def begin_stream(self, content_type: str) -> None:
        """Write the head of a chunked response."""
        self.write(head(200, content_type, {"transfer-encoding": "chunked"}))

    def chunk(self, data: bytes) -> None:
        """Write one piece of a chunked response."""
        if data:
            self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        """End a chunked response properly."""
        self.write(b"0\r\n\r\n")


def head(status: int, content_type: str, headers: dict[str, str]) -> bytes:
    """Return the status line and headers."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Scripted')}", f"content-type: {content_type}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
