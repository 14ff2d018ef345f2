"""A client of the door for tests and benchmarks: requests, and turns as chunks, with every way of leaving them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx2
import orjson

from popagent_kit.ids import new_id
from popagent_uistream.chunks import Chunk
from popagent_uistream.parse import StreamParser
from popagent_uistream.reducer import Message, MessageReducer, client_view

# Heartbeats come every 3 s; a stream that is silent for this long is dead.
READ_TIMEOUT_S: Final = 30.0
TURN_HEADER: Final = "x-popagent-turn-id"


@dataclass
class Answer:
    """What one stream has said so far; `done` once [DONE] came. An answer that is no stream has its `body` instead."""

    status: int
    turn_id: str = ""
    chunks: list[Chunk] = field(default_factory=list)
    done: bool = False
    first_text_s: float | None = None
    body: Any = None

    @property
    def types(self) -> list[str]:
        """The type of every chunk, in order."""
        return [chunk["type"] for chunk in self.chunks]

    @property
    def message(self) -> Message:
        """The message that the official client would hold."""
        return client_view(MessageReducer().apply_all(self.chunks))

    @property
    def text(self) -> str:
        """Every text delta, joined."""
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    @property
    def ending(self) -> Chunk | None:
        """finish, abort or error; None while the stream goes on or when it was cut."""
        last = self.chunks[-1] if self.chunks else None
        return last if last is not None and last["type"] in {"finish", "abort", "error"} else None

    @property
    def resumable(self) -> bool:
        """The door ended the stream, not the turn: a client joins again by itself."""
        return any(chunk["type"] == "data-connection" and chunk["data"]["resumable"] for chunk in self.chunks)


class TurnStream:
    """One open stream; iterate over its chunks, and leave whenever you like."""

    def __init__(self, response: httpx2.Response, started: float) -> None:
        self.response = response
        self.answer = Answer(response.status_code, response.headers.get(TURN_HEADER, ""))
        self._started = started
        self._parser = StreamParser()
        self._raw: AsyncIterator[bytes] | None = None
        self._yielded = 0

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        """Yield chunks as they come, from where an earlier loop left; a broken connection raises TransportError."""
        if self._raw is None:
            self._raw = self.response.aiter_raw()
        while True:
            while self._yielded < len(self.answer.chunks):
                self._yielded += 1
                yield self.answer.chunks[self._yielded - 1]
            data = await anext(self._raw, None)
            if data is None:
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        for chunk in self._parser.feed(data):
            self.answer.chunks.append(chunk)
            if self.answer.first_text_s is None and chunk["type"] == "text-delta":
                self.answer.first_text_s = time.perf_counter() - self._started
        self.answer.done = self._parser.done

    async def read(self) -> Answer:
        """Read to the end; an answer that is no stream is kept as its body."""
        if self.response.headers.get("content-type", "").startswith("text/event-stream"):
            async for _ in self:
                pass
        else:
            raw = await self.response.aread()
            self.answer.body = orjson.loads(raw) if raw else None
        return self.answer


class Talk:
    """Talks to one gateway with the key; everything is sent as a browser or the command line would send it."""

    def __init__(self, base_url: str, key: str) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        self.http = httpx2.AsyncClient(
            base_url=base_url,
            headers={"x-popagent-key": key},
            timeout=httpx2.Timeout(READ_TIMEOUT_S, connect=5.0),
            limits=limits,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.http.aclose()

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON answer of a request that must succeed."""
        response = await self.http.request(method, path, json=body)
        response.raise_for_status()
        return response.json() if response.content else None

    @asynccontextmanager
    async def open_chat(
        self, text: str, session: str | None = None, *, message_id: str | None = None, **body: Any
    ) -> AsyncIterator[TurnStream]:
        """Start a turn; the same `message_id` and text again give the same turn."""
        message = {"id": message_id or new_id(), "role": "user", "parts": [{"type": "text", "text": text}]}
        started = time.perf_counter()
        content = {"id": session or new_id(), "message": message, **body}
        async with self.http.stream("POST", "/api/chat", json=content) as response:
            yield TurnStream(response, started)

    @asynccontextmanager
    async def open_join(self, session: str) -> AsyncIterator[TurnStream]:
        """Join the running turn from its start; status 204 when nothing runs."""
        started = time.perf_counter()
        async with self.http.stream("GET", f"/api/chat/{session}/stream") as response:
            yield TurnStream(response, started)

    async def chat(self, text: str, session: str | None = None, **body: Any) -> Answer:
        """Start a turn and read it to its end."""
        async with self.open_chat(text, session, **body) as stream:
            return await stream.read()

    async def join(self, session: str) -> Answer:
        """Join the running turn and read it to its end."""
        async with self.open_join(session) as stream:
            return await stream.read()

    async def messages(self, session: str) -> list[Message]:
        """Return the stored messages of a session's branch, oldest first."""
        view = await self.json("GET", f"/api/sessions/{session}")
        return list(view["messages"])


def message_hash(message: Message) -> str:
    """Return the SHA-256 of a message, whatever the order of its keys."""
    return hashlib.sha256(orjson.dumps(message, option=orjson.OPT_SORT_KEYS)).hexdigest()
