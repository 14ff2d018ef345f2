"""What is seen of every request: a span, its rate, errors and duration by route, and no exception that gets away."""

from __future__ import annotations

import logging
import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from popagent_gateway.door import is_page
from popagent_gateway.errors import response_for
from popagent_kit.errors import AppError, InternalError
from popagent_telemetry import metrics
from popagent_telemetry.tracing import current_trace_id, span

log = logging.getLogger(__name__)

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED: Final = "unmatched"
# They say nothing about work: the page and how it listens for hours, probes every few seconds, and looking at traces.
WITHOUT_SPAN: Final = frozenset({"/api/events", "/api/health"})
LOOKING_AT_TRACES: Final = "/api/observability/"

REQUESTS: Final = metrics.counter(
    "popagent_http_requests_total", "Requests by route template", ("method", "route", "status")
)
SECONDS: Final = metrics.histogram(
    "popagent_http_request_seconds", "Time until the answer begins, by route template", ("method", "route")
)
OPEN: Final = metrics.gauge("popagent_http_open_requests", "Requests whose answer has not ended, streams included")


def route_of(scope: Scope) -> str:
    """Return the template of the route that took this request, so that ids never become label values."""
    return getattr(scope.get("route"), "path", UNMATCHED)


class Observed:
    """ASGI middleware, the outermost."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request inside a span, unless it is one of those that say nothing about work."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _says_nothing(scope["path"]):
            await self._counted(scope, receive, send)
        else:
            with span(f"HTTP {_method(scope)}", {"http.request.method": _method(scope)}, kind="server") as current:
                status = await self._counted(scope, receive, send)
                current.update_name(f"{_method(scope)} {route_of(scope)}")
                current.set_attribute("http.route", route_of(scope))
                current.set_attribute("http.response.status_code", status)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> int:
        began = time.perf_counter()
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                SECONDS.labels(_method(scope), route_of(scope)).observe(time.perf_counter() - began)
            await send(message)

        OPEN.inc()
        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            # What is refused after the answer began comes as the cause of what the framework raises then.
            if status != 0 and isinstance(error.__cause__, AppError):
                refusal = error.__cause__
                log.warning("an answer was cut off", extra={"reason": refusal.message, "route": route_of(scope)})
                return status
            log.error("a request failed by a defect of ours", exc_info=error)
            if status == 0:
                await response_for(InternalError(extra={"traceId": current_trace_id()}))(scope, receive, watch)
        finally:
            OPEN.dec()
            REQUESTS.labels(_method(scope), route_of(scope), str(status)).inc()
        return status


def _says_nothing(path: str) -> bool:
    return path in WITHOUT_SPAN or path.startswith(LOOKING_AT_TRACES) or is_page(path)


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else "other"
