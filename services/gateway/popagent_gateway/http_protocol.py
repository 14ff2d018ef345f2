"""HTTP/1.1 on one connection: uvicorn's, with bounds on what a stranger may make it hold, and one meaning a request."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from popagent_gateway.headers import API_ANSWER
from popagent_kit import json
from popagent_telemetry import metrics

log = logging.getLogger(__name__)

# Request line and headers, before anybody knows who asks.
HEAD_BYTES: Final = 64 * 1024
# Chunk sizes, chunk extensions and trailers: this much, and eight bytes a byte of body.
FRAMING_BYTES: Final = 64 * 1024
FRAMING_SHARE: Final = 8
# Seconds from the first byte of a head, or from the connection, to the head's end.
HEAD_S: Final = 20.0

MALFORMED: Final = metrics.counter(
    "popagent_http_malformed_total", "Connections closed for what is not a request, by reason", ("reason",)
)


class RefusedHeadError(Exception):
    """This request has two meanings, or more of a head than a request needs."""

    def __init__(self, status: HTTPStatus, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class DoorProtocol(HttpToolsProtocol):
    """Refuses, with an answer in JSON, what is too long, too slow or ambiguous; says it in a metric, not in a log."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._parts = 0  # heads and messages that ended
        self._head_bytes = 0
        self._framing_bytes = 0
        self._body_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and count what is neither body nor a head that ended."""
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self._in_head and self._head_timer is None:
            self._await_head()
        parts_before, body_before = self._parts, self._body_bytes
        try:
            self.parser.feed_data(data)
            # What one read brings is bounded; what counts is a head, or a body's framing, that goes on and on.
            if self._parts == parts_before:
                self._count(len(data), len(data) - (self._body_bytes - body_before))
        except httptools.HttpParserUpgrade:
            # Nothing is upgraded here; what was asked is answered in HTTP/1.1, and then the connection ends.
            return
        except RefusedHeadError as refused:
            self._hang_up(refused)
        except httptools.HttpParserError as error:
            cause = error.__context__  # what a callback of ours raised
            if isinstance(cause, RefusedHeadError):
                self._hang_up(cause)
                return
            if cause is not None and not isinstance(cause, httptools.HttpParserError):
                log.error("a request failed by a defect of ours", exc_info=cause)
            self._hang_up(RefusedHeadError(HTTPStatus.BAD_REQUEST, "syntax", "This is not a request of HTTP/1.1."))

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._framing_bytes = self._body_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is none, since decisions were made before it came."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head says two things at once."""
        self._in_head = False
        self._parts += 1
        self._stop_waiting()
        self._head_bytes = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._check_head()
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            raise RefusedHeadError(
                HTTPStatus.BAD_REQUEST, "transfer-encoding", "The only transfer-encoding accepted is chunked."
            )
        self._take_target_host()
        super().on_headers_complete()
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Count the body apart from what frames it."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The next byte belongs to a head."""
        super().on_message_complete()
        self._in_head = True
        self._parts += 1
        self._head_bytes = 0

    # What is refused, and how

    def _take_target_host(self) -> None:
        """A request for `http://host/path` names its host twice; where they differ the door must see both."""
        scheme, separator, rest = self.url.partition(b"://")
        if not separator or b"/" in scheme:
            return
        authority = rest.partition(b"/")[0].partition(b"?")[0]
        if [value.lower() for name, value in self.headers if name == b"host"] != [authority.lower()]:
            self.headers.append((b"host", authority))

    def _check_head(self) -> None:
        if self._head_bytes > HEAD_BYTES:
            raise RefusedHeadError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                "head",
                f"Request line and headers have more than {HEAD_BYTES:,} bytes.",
            )

    def _count(self, size: int, framing: int) -> None:
        if self._in_head:
            self._head_bytes += size
            self._check_head()
        else:
            self._framing_bytes += framing
            self._check_framing()

    def _check_framing(self) -> None:
        if self._framing_bytes > FRAMING_BYTES + FRAMING_SHARE * self._body_bytes:
            raise RefusedHeadError(HTTPStatus.BAD_REQUEST, "framing", "The body has more framing than content.")

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self._in_head or self._answering:
            return
        if not self._head_bytes:  # a connection that a browser opened in advance
            self.transport.close()
        else:
            self._hang_up(
                RefusedHeadError(HTTPStatus.REQUEST_TIMEOUT, "slow", "Request line and headers did not come in time.")
            )

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _may_answer(self) -> bool:
        """Tell whether what is written now would be the answer to the request that is being read."""
        if self.transport.is_closing() or self.pipeline:
            return False
        return not self._answering or (not self._in_head and not self.cycle.response_started)

    def _hang_up(self, refused: RefusedHeadError) -> None:
        """Answer and close; into another answer nothing may be mixed."""
        MALFORMED.labels(refused.reason).inc()
        log.debug("connection closed", extra={"reason": refused.reason})
        if self._may_answer:
            self.transport.write(_answer(refused))
        if self._answering:  # the route that waits for the body learns that its client is gone
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def _answer(refused: RefusedHeadError) -> bytes:
    body = json.dumps({"error": refused.message, "code": "malformed_request"})
    headers = {
        **API_ANSWER,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = [f"HTTP/1.1 {refused.status.value} {refused.status.phrase}", *map(": ".join, headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
