"""How every refusal looks: `{error, code, field?}` and what belongs beside it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from popagent_kit import json
from popagent_kit.errors import AppError, InternalError, InvalidInputError, NotFoundError
from popagent_kit.invalid import explained
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


def invalid(errors: Sequence[Mapping[str, Any]], model: Any = None) -> Response:
    """Return 422 with the first field that is wrong, or 404 when it is an id in the path.

    `model` is the type that the whole body, or the whole query, was validated against.
    """
    if any(error["loc"][0] == "path" for error in errors):
        return response_for(NotFoundError())
    first = errors[0]
    place, *location = first["loc"]
    if first["type"] == "missing" and not location:
        return response_for(InvalidInputError("A body is required: one JSON object.", field="body"))
    field, sentence = explained({**first, "loc": location}, model, whole=f"the {place}")
    return response_for(InvalidInputError(sentence, field=field))


async def on_app_error(request: Request, error: Exception) -> Response:
    """Answer an error that some owner, or the door, raised on purpose."""
    assert isinstance(error, AppError)
    if error.http_status >= 500:
        log.warning("%s %s: %s", request.method, request.scope["path"], error.message, extra={"code": error.code})
    return response_for(error)


async def on_validation_error(request: Request, error: Exception) -> Response:
    """Answer a body, query, header or path of another shape."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    return invalid(errors, _model_of(request.scope.get("route"), errors[0]["loc"][0]))


def _model_of(route: object, place: object) -> Any:
    """Return the contract of a route's body, or of its query where one class holds all of it."""
    if not isinstance(route, APIRoute):
        return None
    if place == "body":
        return route.body_field.field_info.annotation if route.body_field else None
    if place == "query":
        return next((param.field_info.annotation for param in route.dependant.query_params), None)
    return None


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
