"""Playing one scripted reply on a connection: delays, holds, heartbeats and every fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from popagent_testing.model_connection import Connection, head
from popagent_testing.model_replies import LONG_LINE_BYTES, Reply, completion, error_body, events


async def play(
    connection: Connection, reply: Reply, request: dict[str, Any], hold: Callable[[], Awaitable[None]]
) -> None:
    """Write `reply`; cancelled when the client leaves."""
    if reply.header_delay_s:
        await asyncio.sleep(reply.header_delay_s)
    if reply.status != 200:
        headers = {"retry-after": reply.retry_after} if reply.retry_after is not None else {}
        raw = error_body(reply) if reply.raw is None else reply.raw.encode()
        connection.respond(reply.status, raw, "application/json", headers)
    elif reply.raw is not None:
        await body_of(connection, reply, [reply.raw.encode()])
    elif reply.fault in {"json", "json-glued-done"} or (not request.get("stream") and reply.fault != "sse"):
        glued = b"data: [DONE]\n\n" if reply.fault == "json-glued-done" else b""
        content_type = reply.content_type if glued else "application/json"
        connection.respond(200, completion(reply, request) + glued, content_type)
    elif reply.fault == "lying-length":
        deltas, _ = events(reply, request)
        connection.write(head(200, reply.content_type, {"content-length": "1000000"}) + b"".join(deltas))
        connection.close()
    else:
        await stream(connection, reply, request, hold)


async def body_of(connection: Connection, reply: Reply, pieces: list[bytes]) -> None:
    """Write a whole body, split as `dribble_bytes` says."""
    connection.begin_stream(reply.content_type)
    for piece in pieces:
        await put(connection, reply, piece)
    connection.end_stream()


async def put(connection: Connection, reply: Reply, data: bytes) -> None:
    """Write one piece, in dribbles when asked."""
    if not reply.dribble_bytes:
        connection.chunk(data)
        return
    for at in range(0, len(data), reply.dribble_bytes):
        connection.chunk(data[at : at + reply.dribble_bytes])
        await asyncio.sleep(0)


async def stream(
    connection: Connection, reply: Reply, request: dict[str, Any], hold: Callable[[], Awaitable[None]]
) -> None:
    """Write the events one by one, with the fault after `reply.after` deltas."""
    connection.begin_stream(reply.content_type)
    deltas, closing = events(reply, request)
    if reply.fault == "all-malformed":
        deltas, closing = [b'data: {"id": oops\n\n'] * len(deltas), []
    if reply.fault == "empty":
        deltas, closing = [], []
    before = deltas[: reply.after + 1]
    for event in before:
        await paced(connection, reply, event)
    if reply.hold:
        await hold()
    for _ in range(reply.heartbeats):
        connection.chunk(b": still reading the prompt\n\n")
        await asyncio.sleep(reply.heartbeat_s)
    rest = deltas[len(before) :]
    if await misbehave(connection, reply, (rest or closing)[0] if rest or closing else b"data: {}\n\n"):
        return
    for event in rest:
        await paced(connection, reply, event)
    if reply.fault == "open-end":
        await put(connection, reply, closing[0])
        await asyncio.Event().wait()
    if reply.fault != "no-finish":
        for event in closing:
            await put(connection, reply, event)
    connection.end_stream()


async def paced(connection: Connection, reply: Reply, event: bytes) -> None:
    """Write one delta after its pause."""
    if reply.token_delay_s:
        await asyncio.sleep(reply.token_delay_s)
    await put(connection, reply, event)


async def misbehave(connection: Connection, reply: Reply, following: bytes) -> bool:
    """Carry out the fault; True when nothing may follow."""
    match reply.fault:
        case "stall":
            await asyncio.Event().wait()
        case "cut":
            connection.close()
        case "cut-line":
            connection.chunk(following[: len(following) // 2])
            connection.close()
        case "cut-json":
            connection.chunk(following[: len(following) // 2])
            connection.end_stream()
        case "error-event":
            connection.chunk(b"data: " + error_body(reply) + b"\n\n")
            connection.chunk(b"data: [DONE]\n\n")
            connection.end_stream()
        case "long-line":
            connection.chunk(b"data: " + b"x" * LONG_LINE_BYTES)
            connection.end_stream()
        case "malformed":
            connection.chunk(b'data: {"choices": [{"delta": {"content": \n\n')
            return False
        case "plain-lines":
            connection.chunk(b"data: the router says hello\n\ndata: [DONE]\n\n")
            return False
        case _:
            return False
    return True
