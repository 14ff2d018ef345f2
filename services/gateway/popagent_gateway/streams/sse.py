"""Writes a stream of ready server-sent events to one client, and notices when it leaves or reads too slowly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from popagent_gateway.streams.closing import Closing
from popagent_telemetry import metrics

log = logging.getLogger(__name__)

# Seconds without a byte after which a client hears from us, so that proxies and people know the line is alive.
HEARTBEAT_S: Final = 3.0
# Seconds that a client may take no byte at all before its connection is given up; it can come back and resume.
WRITE_TIMEOUT_S: Final = 60.0
HEADERS: Final = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}

STREAMS: Final = metrics.gauge("popagent_http_open_streams", "Streams that clients follow", ("kind",))
CUT: Final = metrics.counter("popagent_http_slow_readers_total", "Streams given up because the client read too slowly")


class Feed(Protocol):
    """Where the bytes come from. `leave` and `close` may come at any time, on the loop."""

    kind: str

    def events(self) -> AsyncIterator[bytes]:
        """Yield ready bytes until the stream ends by itself."""
        ...

    def leave(self) -> None:
        """Stop at once and silently: nobody listens any more."""
        ...

    def close(self) -> None:
        """End soon and properly: the door closes."""
        ...

    async def release(self) -> None:
        """Give back what the feed holds, whether `events` was ever followed or not; comes last, and may come twice."""
        ...


class EventStream(Response):
    """An answer that is written as it comes; a closed connection ends only this answer, never the work behind it."""

    def __init__(self, feed: Feed, closing: Closing, headers: Mapping[str, str] = HEADERS) -> None:
        super().__init__(status_code=200, headers=dict(headers))
        del self.headers["content-length"]
        self.feed = feed
        self.closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until the feed ends, the client leaves or the door closes."""
        del scope
        watcher = asyncio.create_task(self._watch(receive))
        self.closing.add(self.feed.close)
        events = self.feed.events()
        open_streams = STREAMS.labels(self.feed.kind)
        open_streams.inc()
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for data in events:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            # uvicorn closes a connection whose answer was left unfinished.
            CUT.inc()
            log.info("a client took no byte for %g s; its stream was given up", WRITE_TIMEOUT_S)
        finally:
            open_streams.dec()
            self.closing.remove(self.feed.close)
            watcher.cancel()
            self.feed.leave()
            # A generator that was never asked for its first item runs no `finally` of its own.
            try:
                aclose = getattr(events, "aclose", None)
                if aclose is not None:
                    await aclose()
            finally:
                await self.feed.release()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.feed.leave()
