"""How every refusal looks: `{error, code, field?}` and what belongs beside it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from popagent_kit import json
from popagent_kit.errors import AppError, InternalError, NotFoundError
from popagent_kit.text import one_line
from popagent_telemetry.tracing import current_trace_id

log = logging.getLogger(__name__)

RETRY_STATUSES: Final = frozenset({429, 503})
RETRY_AFTER_S: Final = 1.0
CODES: Final = {404: "not_found", 405: "method_not_allowed"}


class JsonResponse(Response):
    """JSON by the one encoder of this project."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes; NaN cannot occur in them."""
        return json.dumps(content)


def response_for(error: AppError) -> Response:
    """Return the answer that `error` stands for, with Retry-After where coming back helps."""
    body = {"error": error.message, "code": error.code}
    if error.field is not None:
        body["field"] = error.field
    headers = {"cache-control": "no-store"}
    if error.http_status in RETRY_STATUSES:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s or RETRY_AFTER_S)))
    return JsonResponse({**error.extra, **body}, error.http_status, headers)


def wire_field(location: Sequence[int | str]) -> str:
    """Return the dotted name of a field as a client knows it, `message.parts.0.text` for example."""
    return one_line(".".join(str(step) for step in location[1:]), 120)


def invalid(errors: Sequence[Mapping[str, Any]]) -> Response:
    """Return 422 with the first field that is wrong, or 404 when it is an id in the path."""
    if any(error["loc"][0] == "path" for error in errors):
        return response_for(NotFoundError())
    first = errors[0]
    field = wire_field(first["loc"]) or None
    reason = {
        "missing": "this field is required",
        "extra_forbidden": "this field is not accepted",
    }.get(first["type"], one_line(str(first["msg"]).removeprefix("Value error, "), 300))
    body: dict[str, Any] = {"error": f"{field}: {reason}" if field else reason, "code": "invalid_input"}
    if field:
        body["field"] = field
    return JsonResponse(body, 422, {"cache-control": "no-store"})


async def on_app_error(request: Request, error: Exception) -> Response:
    """Answer an error that some owner, or the door, raised on purpose."""
    assert isinstance(error, AppError)
    if error.http_status >= 500:
        log.warning("%s %s: %s", request.method, request.scope["path"], error.message, extra={"code": error.code})
    return response_for(error)


async def on_validation_error(request: Request, error: Exception) -> Response:
    """Answer a body, query or path of another shape."""
    del request
    assert isinstance(error, RequestValidationError)
    return invalid(error.errors())


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Answer unknown routes and methods as JSON too."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    text = {
        404: "There is no such route.",
        405: f"This route does not take {one_line(request.method, 20)}.",
    }.get(status, status.phrase)
    body = {"error": text, "code": CODES.get(status, "invalid_request")}
    headers = {"allow": ", ".join(_methods(request))} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
    return JsonResponse(body, status, {"cache-control": "no-store", **headers})


def _methods(request: Request) -> list[str]:
    """Return the methods of every route with this path; the router itself names those of the first alone."""
    found: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


async def on_defect(request: Request, error: Exception) -> Response:
    """Answer 500; `Observed` gets the same exception afterwards and logs it."""
    del request, error
    return response_for(InternalError(extra={"traceId": current_trace_id()}))
