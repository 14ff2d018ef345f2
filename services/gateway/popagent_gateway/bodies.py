"""Reads a request's body once: bounded, JSON only, without NUL; routes get the parsed value."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from popagent_gateway.door import SAFE_METHODS, header_values
from popagent_gateway.errors import response_for
from popagent_kit import json
from popagent_kit.errors import (
    AppError,
    InvalidInputError,
    MalformedJsonError,
    TooLargeError,
    UnsupportedMediaTypeError,
)

BODY_BYTES: Final = 1024 * 1024
# The stock chat client sends its whole history with every message; only the last message is looked at.
CHAT_BODY_BYTES: Final = 8 * 1024 * 1024
LARGE_BODIES: Final = {"/api/chat": CHAT_BODY_BYTES}
JSON_TYPE: Final = re.compile(rb"\Aapplication/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?\Z", re.IGNORECASE)
PARSED: Final = "popagent.body"


class Bodies:
    """ASGI middleware; refuses with 400, 413, 415 or 422 before a route is looked up."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and check the body of a request that may have one, then hand it on as one message."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            if b"%00" in scope["query_string"] or b"\x00" in scope["query_string"]:
                raise InvalidInputError("The query must not contain the NUL character.", field="query")
            limit = LARGE_BODIES.get(scope["path"], BODY_BYTES) if scope["method"] not in SAFE_METHODS else 0
            body = await read_body(scope, receive, limit)
            if body:
                _check_type(scope)
                scope[PARSED] = _parse(body)
        except AppError as error:
            await response_for(error)(scope, receive, send)
            return
        except ConnectionError:
            return  # nobody is left to answer
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self.app(scope, replay, send)


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the whole body, at most `limit` bytes.

    Raises:
        TooLargeError: By its announced length at once, else as soon as one byte more has come.
        ConnectionError: The client left before the end.
    """
    too_large = TooLargeError(f"The body is larger than {limit} bytes, the most this route accepts.")
    announced = header_values(scope, b"content-length")
    if any(not value.isdigit() for value in announced):
        raise MalformedJsonError("The header content-length is not a number.")
    if any(int(value) > limit for value in announced):
        raise too_large
    # One growing block goes back to the system when it is dropped; thousands of small pieces would stay in the heap.
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        chunk = message.get("body", b"")
        if len(body) + len(chunk) > limit:
            raise too_large
        body += chunk
        more = message.get("more_body", False)
    return bytes(body)


def _check_type(scope: Scope) -> None:
    types = header_values(scope, b"content-type")
    if len(types) == 1 and JSON_TYPE.match(types[0].strip()):
        return
    raise UnsupportedMediaTypeError()


def _parse(body: bytes) -> Any:
    value = json.loads(body)
    # Only an escape can bring a NUL into a string: a raw control character is not JSON.
    if b"\\u0000" in body and (field := _field_with_nul(value)) is not None:
        raise InvalidInputError(f"{field}: must not contain the NUL character", field=field)
    return value


def _field_with_nul(root: Any) -> str | None:
    """Return the dotted path of the first string with a NUL; without recursion, since nesting is the client's."""
    open_items: list[tuple[str, Any]] = [("", root)]
    while open_items:
        path, value = open_items.pop()
        if isinstance(value, str) and "\x00" in value:
            return path or "body"
        if isinstance(value, dict):
            if any("\x00" in key for key in value):
                return path or "body"
            open_items.extend((f"{path}.{key}" if path else key, item) for key, item in value.items())
        elif isinstance(value, list):
            open_items.extend((f"{path}.{index}" if path else str(index), item) for index, item in enumerate(value))
    return None


class ParsedRequest(Request):
    """A request whose body was parsed by `Bodies`."""

    async def json(self) -> Any:
        """Return the parsed body; nothing is parsed a second time, by another parser with other limits."""
        return self.scope[PARSED]


class JsonRoute(APIRoute):
    """The route class of every router here."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, given a `ParsedRequest`."""
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            return await handle(ParsedRequest(request.scope, request.receive))

        return handle_parsed
