"""An HTTP client that costs next to nothing: it shares the cores with the suite, and the figures are the suite's."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import httptools
import orjson

TIMEOUT_S = 60.0


@dataclass
class Heard:
    """One answer; times are seconds of `time.perf_counter()`. `marked_at` is when `mark` was first seen in the body."""

    asked_at: float
    status: int = 0
    marked_at: float = 0.0
    ended_at: float = 0.0
    body: bytearray = field(default_factory=bytearray)

    @property
    def first_token_ms(self) -> float:
        return (self.marked_at - self.asked_at) * 1_000


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.parser = httptools.HttpResponseParser(self)
        self.heard = Heard(0)
        self.mark = b""
        self.searched = 0
        self.ended: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        body = self.heard.body
        body += data
        if not self.heard.marked_at:
            if body.find(self.mark, self.searched) >= 0:
                self.heard.marked_at = time.perf_counter()
            self.searched = max(0, len(body) - len(self.mark))

    def on_message_complete(self) -> None:
        self.heard.status = self.parser.get_status_code()
        self.heard.ended_at = time.perf_counter()
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.ended is not None and not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("the connection was closed in the middle of an answer"))

    async def ask(self, request: bytes, mark: bytes) -> Heard:
        assert self.transport is not None
        self.parser = httptools.HttpResponseParser(self)
        self.mark, self.searched = mark, 0
        self.ended = asyncio.get_running_loop().create_future()
        self.heard = Heard(time.perf_counter())
        self.transport.write(request)
        async with asyncio.timeout(TIMEOUT_S):
            await self.ended
        return self.heard


class LeanClient:
    """Connections to one address, kept open and used again."""

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self.head = f"Host: {self.host}:{self.port}\r\nContent-Type: application/json\r\nx-popagent-key: {key}\r\n"
        self.free: list[Connection] = []

    async def post(self, path: str, content: object, mark: bytes) -> Heard:
        """Post JSON and read the answer to its end; a broken connection raises OSError, a silent one TimeoutError."""
        body = orjson.dumps(content)
        request = f"POST {path} HTTP/1.1\r\n{self.head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        connection = self._open_one() or await self._connect()
        heard = await connection.ask(request, mark)
        if connection.transport is not None:
            self.free.append(connection)
        return heard

    async def warm(self, count: int) -> None:
        """Open `count` connections, so that no answer waits for one."""
        self.free += [await self._connect() for _ in range(count)]

    def close(self) -> None:
        for connection in self.free:
            if connection.transport is not None:
                connection.transport.close()
        self.free.clear()

    def _open_one(self) -> Connection | None:
        """Return a connection that the server has not closed for idling."""
        while self.free:
            connection = self.free.pop()
            if connection.transport is not None:
                return connection
        return None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(Connection, self.host, self.port)
        return protocol
