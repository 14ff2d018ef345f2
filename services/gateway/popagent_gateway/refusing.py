"""Refuses a request before its body was read, so that the client really gets the answer."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from popagent_gateway.errors import response_for
from popagent_gateway.headers import header_values
from popagent_kit.errors import AppError

# What is taken and dropped behind a refusal.
DROP_S: Final = 2.0
DROP_BYTES: Final = 16 * 1024 * 1024


async def refuse(error: AppError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer `error`, then take and drop what the client is still sending, within bounds, and hang up.

    A connection that is closed with bytes unread is reset, and the reset would overtake the answer.
    """
    response = response_for(error)
    if not _announces_body(scope):
        await response(scope, receive, send)
        return
    response.headers["connection"] = "close"

    async def send_but_stay(message: Message) -> None:
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await response(scope, receive, send_but_stay)
    # Who waits to be asked for the body has sent none, and must not be asked now.
    if not header_values(scope, b"expect"):
        await _drop_rest(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drop_rest(receive: Receive) -> None:
    dropped = 0
    try:
        async with asyncio.timeout(DROP_S):
            while dropped < DROP_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return  # slower than the refusal is worth


def _announces_body(scope: Scope) -> bool:
    lengths = header_values(scope, b"content-length")
    return any(length != b"0" for length in lengths) or bool(header_values(scope, b"transfer-encoding"))
