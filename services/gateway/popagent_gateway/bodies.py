"""Reads a request's body once: bounded, in time, JSON only, without NUL; routes get the checked value."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from popagent_gateway.door import SAFE_METHODS
from popagent_gateway.errors import response_for
from popagent_gateway.headers import header_values
from popagent_gateway.refusing import refuse
from popagent_kit import json
from popagent_kit.errors import (
    AppError,
    InvalidInputError,
    MalformedJsonError,
    TooLargeError,
    UnsupportedMediaTypeError,
)
from popagent_kit.text import one_line

BODY_BYTES: Final = 1024 * 1024
# The stock chat client sends its whole history with every message; only the last message is looked at.
CHAT_BODY_BYTES: Final = 8 * 1024 * 1024
# A page of a million characters, each of them written as two escapes.
PAGE_BODY_BYTES: Final = 12 * 1024 * 1024
LARGE_BODIES: Final = (
    (re.compile(r"/api/chat"), CHAT_BODY_BYTES),
    (re.compile(r"/api/workspaces/[^/]+/docs/page"), PAGE_BODY_BYTES),
)
# A file, handed on while it comes; by its route, how many bytes and of which kinds.
UPLOAD: Final = re.compile(r"/api/workspaces/.+/docs/import", re.S)
UPLOAD_BYTES: Final = 64 * 1024 * 1024
UPLOAD_TYPES: Final = re.compile(
    rb"\A(?:application/zip|text/markdown)\s*(?:;\s*charset\s*=\s*\"?utf-8\"?\s*)?\Z", re.I
)
UPLOAD_S: Final = 600.0
# Seconds for a whole body: 8 MiB over a line of 1 Mbit/s.
BODY_S: Final = 75.0
# Of which only one can be meant.
SINGLE_HEADERS: Final = (b"idempotency-key", b"last-event-id")
JSON_TYPE: Final = re.compile(rb"\Aapplication/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?\Z", re.IGNORECASE)
PARSED: Final = "popagent.body"


class RequestTimeoutError(AppError):
    """The body did not arrive in time."""

    code = "request_timeout"
    http_status = 408


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
            _check_encoding(scope)
            if scope["method"] == "POST" and UPLOAD.fullmatch(scope["path"]):
                _check_upload(scope)
                await self.app(scope, bounded(receive), send)
                return
            body = await read_body(scope, receive, _limit(scope))
        except AppError as error:
            await refuse(error, scope, receive, send)
            return
        except ConnectionError:
            return  # nobody is left to answer
        try:
            if body:
                _check_type(scope)
                scope[PARSED] = _parse(body)
        except AppError as error:
            await response_for(error)(scope, receive, send)  # all of it was read: nothing to drop, nothing to wait for
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self.app(scope, replay, send)


def bounded(receive: Receive) -> Receive:
    """Return what gives the body piece by piece, until it is too large or takes too long."""
    left, give_up_at = UPLOAD_BYTES, asyncio.get_running_loop().time() + UPLOAD_S

    async def piece() -> Message:
        nonlocal left
        try:
            async with asyncio.timeout_at(give_up_at):
                message = await receive()
        except TimeoutError as error:
            raise RequestTimeoutError from error
        left -= len(message.get("body", b""))
        if left < 0:
            raise _upload_too_large()
        return message

    return piece


def _check_upload(scope: Scope) -> None:
    types = header_values(scope, b"content-type")
    if len(types) != 1 or not UPLOAD_TYPES.match(types[0].strip()):
        raise UnsupportedMediaTypeError("Send a zip (application/zip) or a Markdown file (text/markdown).")
    announced = header_values(scope, b"content-length")
    if any(not value.isdigit() for value in announced):
        raise MalformedJsonError("The header content-length is not a number.")
    if any(int(value) > UPLOAD_BYTES for value in announced):
        raise _upload_too_large()


def _upload_too_large() -> TooLargeError:
    return TooLargeError(f"The file is larger than {UPLOAD_BYTES:,} bytes, the most that can be imported at once.")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the whole body, at most `limit` bytes.

    Raises:
        TooLargeError: By its announced length at once, else as soon as one byte more has come.
        RequestTimeoutError: It did not come within BODY_S.
        ConnectionError: The client left before the end.
    """
    accepted = f"The body is larger than {limit:,} bytes, the most this route accepts."
    too_large = TooLargeError(accepted if limit else f"A {scope['method']} takes no body.")
    announced = header_values(scope, b"content-length")
    if any(not value.isdigit() for value in announced):
        raise MalformedJsonError("The header content-length is not a number.")
    if any(int(value) > limit for value in announced):
        raise too_large
    # One growing block goes back to the system when it is dropped; thousands of small pieces would stay in the heap.
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(BODY_S):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionError
                chunk = message.get("body", b"")
                if len(body) + len(chunk) > limit:
                    raise too_large
                body += chunk
                more = message.get("more_body", False)
    except TimeoutError as error:
        raise RequestTimeoutError from error
    return bytes(body)


def _limit(scope: Scope) -> int:
    if scope["method"] in SAFE_METHODS:
        return 0
    return next((limit for path, limit in LARGE_BODIES if path.fullmatch(scope["path"])), BODY_BYTES)


def _check_encoding(scope: Scope) -> None:
    if any(value.strip().lower() != b"identity" for value in header_values(scope, b"content-encoding")):
        raise UnsupportedMediaTypeError("Send the body as it is, without content-encoding.")


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


class CheckedRequest(Request):
    """A request whose body was parsed by `Bodies` and checked by its route."""

    def __init__(self, scope: Scope, receive: Receive, value: object) -> None:
        super().__init__(scope, receive)
        self.value = value

    async def json(self) -> Any:
        """Return the checked body; nothing is parsed a second time, by another parser with other limits."""
        return self.value


class JsonRoute(APIRoute):
    """The route class of every router here: names and types are those of the contract, and nothing is passed over."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which gets a `CheckedRequest`."""
        handle = super().get_route_handler()
        body: TypeAdapter[Any] | None = None
        if self.body_field is not None and self.body_field.field_info.annotation is not None:
            body = TypeAdapter(self.body_field.field_info.annotation)
        query = _query_names(self)

        async def handle_checked(request: Request) -> Response:
            _check_query(request, query)
            _check_repeats(request)
            value = request.scope.get(PARSED)
            if body is not None:
                # Without a body FastAPI itself says what is missing.
                value = _checked(body, value) if PARSED in request.scope else None
            elif value not in (None, {}):
                raise InvalidInputError("This route takes no body.", field="body")
            return await handle(CheckedRequest(request.scope, request.receive, value))

        return handle_checked


def _checked(body: TypeAdapter[Any], value: Any) -> Any:
    """Return the body as its class: `true` is no number, `"1"` neither, and a field has one spelling."""
    try:
        return body.validate_python(value, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in details]) from error


def _query_names(route: APIRoute) -> frozenset[str]:
    names: set[str] = set()
    for param in route.dependant.query_params:
        kind = param.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= {field.alias or name for name, field in kind.model_fields.items()}
        else:
            names.add(param.alias)
    return frozenset(names)


def _check_query(request: Request, names: frozenset[str]) -> None:
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        field = one_line(name, 120) or "query"
        if name not in names:
            raise InvalidInputError(f"{field} is not accepted here", field=field)
        if name in seen:
            raise InvalidInputError(f"{field} must be given once", field=field)
        seen.add(name)


def _check_repeats(request: Request) -> None:
    for name in SINGLE_HEADERS:
        if len(header_values(request.scope, name)) > 1:
            field = name.decode("ascii")
            raise InvalidInputError(f"{field} must be given once", field=field)
