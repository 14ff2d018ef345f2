"""A server on loopback that hooks are posted to; it answers what it is told to, byte for byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from popagent_testing.loopback import LoopbackServer

Answer = Callable[["Told"], Awaitable[bytes | list[bytes]]]


# Between the pieces of an answer that drips.
PIECE_S = 0.02


@dataclass(frozen=True)
class Told:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.body)
        return said


def answer(body: bytes | dict[str, Any] = b"", status: str = "200 OK", headers: str = "") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data


def always(data: bytes) -> Answer:
    async def given(_: Told) -> bytes:
        return data

    return given


def denies(reason: str) -> Answer:
    return always(answer({"decision": "deny", "reason": reason}))


def drips(*data: bytes) -> Answer:
    async def given(_: Told) -> list[bytes]:
        return list(data)

    return given


async def hangs(_: Told) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


@dataclass
class HookServer(LoopbackServer):
    """`answers` maps a path to what it answers; any other agrees with an empty 200. An empty answer hangs up."""

    answers: dict[str, Answer] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return self.url

    @property
    def paths(self) -> list[str]:
        return [told.path for told in self.told]

    async def answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        told = Told(first.split()[1], headers, body)
        self.told.append(told)
        said = await self.answers.get(told.path, always(answer()))(told)
        if isinstance(said, bytes):
            writer.write(said)
        else:
            for piece in said:
                writer.write(piece)
                await asyncio.sleep(PIECE_S)
        await writer.drain()
