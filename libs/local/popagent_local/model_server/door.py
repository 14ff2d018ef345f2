"""What every route shares: the key, the body, errors in OpenAI's form, and a client that may leave."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from popagent_kit import json
from popagent_kit.errors import AppError, MalformedJsonError, TooLargeError, UnauthorizedError

MOST_BODY_BYTES: Final = 8 * 1024 * 1024
CLIENT_GONE: Final = 499

T = TypeVar("T")


class KeyRequired:
    """Lets nobody without the key reach anything but `/health`."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self.app = app
        self.expected = f"Bearer {api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass on."""
        if scope["type"] == "http" and scope["path"] != "/health":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self.expected):
                error = UnauthorizedError("The key is missing or wrong. Send it as a bearer token.")
                await error_response(error)(scope, receive, send)
                return
        await self.app(scope, receive, send)


async def json_body(request: Request) -> Any:
    """Return the parsed body.

    Raises:
        TooLargeError: It is larger than 8 MiB.
        MalformedJsonError: It is not JSON.
    """
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MOST_BODY_BYTES:
            raise TooLargeError(f"The body is larger than {MOST_BODY_BYTES} bytes.")
    return json.loads(bytes(received))


async def until_client_leaves(request: Request, work: Coroutine[Any, Any, T]) -> T | Response:
    """Return the result of `work`; when the client leaves first, `work` is cancelled and nobody reads our answer.

    The body must have been read before.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else Response(status_code=CLIENT_GONE)
    finally:
        for waiting in (task, leaving):
            waiting.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def error_body(error: AppError) -> dict[str, Any]:
    """Return the error as OpenAI's clients expect it."""
    inner = {"message": error.message, "type": error.code, "param": error.field, "code": error.code}
    return {"error": inner}


def error_response(error: AppError) -> Response:
    """Return the response of an error."""
    headers = {"Retry-After": f"{error.retry_after_s:.0f}"} if error.retry_after_s else None
    status = 400 if isinstance(error, MalformedJsonError) else error.http_status
    return JSONResponse(error_body(error), status, headers)


async def on_app_error(request: Request, error: Exception) -> Response:
    """Answer for a handler that raised an AppError."""
    assert isinstance(error, AppError)
    return error_response(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer for a path or method that does not exist."""
    assert isinstance(error, HTTPException)
    inner = {"message": error.detail, "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}
    return JSONResponse({"error": inner}, error.status_code)
