"""Live streams of turns and tasks, writing side: the first frame at once, then coalesced, repeated after an outage."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import nats.errors

from popagent_bus.connection import Connection, check_subject
from popagent_bus.frames import END, HEARTBEAT, MORE, Frame
from popagent_bus.reading import LiveGapError, LiveReader
from popagent_kit.errors import InvalidInputError, TooLargeError
from popagent_telemetry import metrics

COALESCE_S: Final = 0.008
BEAT_S: Final = 3.0
# So long after its end a stream is still repeated when NATS comes back.
REMEMBERED_AFTER_END_S: Final = 60.0
FRAME_BYTES: Final = 512 * 1024
HEAD_BYTES: Final = 64

PUBLISHED: Final = metrics.counter("popagent_live_frames_total", "Live frames by what became of them", ("outcome",))
log = logging.getLogger(__name__)

__all__ = ["END", "HEARTBEAT", "MORE", "Frame", "LiveGapError", "LivePublisher", "LiveReader"]


class LivePublisher:
    """The owner's end of one live stream. Never raises for an absent NATS: the frames are repeated from memory.

    It remembers the frames since the last `checkpoint`, and all of them until there is one.
    """

    def __init__(
        self, connection: Connection, subject: str, *, next_chunk: int = 0, coalesce_s: float = COALESCE_S
    ) -> None:
        check_subject(subject)
        self.connection = connection
        self.subject = subject
        self.next_chunk = next_chunk
        self.coalesce_s = coalesce_s
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._held_first = next_chunk
        self._timer: asyncio.TimerHandle | None = None
        self._remembered: deque[Frame] = deque()
        self._last_sent = self._loop.time()
        self._beat = self._loop.call_later(BEAT_S, self._on_beat)
        self._forget: asyncio.TimerHandle | None = None
        self._remove_listener: Callable[[], None] = connection.on_reconnect(self.repeat)

    async def send(self, first: int, count: int, sse_bytes: bytes, end: bool = False) -> None:
        """Publish chunks; `first` must follow the last one. At once when nothing went out for 8 ms, else collected.

        With `end` the stream is over; publish it only after the commit.

        Raises:
            InvalidInputError: A number out of order, or chunks after the end.
            TooLargeError: One chunk is larger than a message may be.
        """
        if self.ended or first != self.next_chunk:
            raise InvalidInputError(f"chunk {first} of {self.subject} does not follow {self.next_chunk - 1}")
        if len(sse_bytes) > self.connection.max_payload - HEAD_BYTES and count == 1:
            raise TooLargeError(f"a chunk of {len(sse_bytes)} bytes is more than a message may have")
        self._held.append(sse_bytes)
        self.next_chunk += count
        if end:
            self.ended = True
            await self._flush(END)
            self._beat.cancel()
            self._forget = self._loop.call_later(REMEMBERED_AFTER_END_S, self.close)
        elif self._timer is None:
            await self._flush(MORE)
            self._timer = self._loop.call_later(self.coalesce_s, self._on_timer)

    def checkpoint(self, chunk: int) -> None:
        """Forget the frames before number `chunk`: whoever joins later gets them from the stored snapshot."""
        while self._remembered and self._remembered[0].next <= chunk and self._remembered[0].flag != END:
            self._remembered.popleft()

    async def repeat(self) -> None:
        """Publish again all that is remembered; readers drop what they know."""
        joined: list[Frame] = []
        size = 0
        for frame in (*self._remembered, None):
            if joined and (frame is None or size + len(frame.data) > FRAME_BYTES):
                data = b"".join(item.data for item in joined)
                count = joined[-1].next - joined[0].first
                await self._publish(Frame(joined[0].first, count, joined[-1].flag, data), "repeated")
                joined, size = [], 0
            if frame is not None:
                joined.append(frame)
                size += len(frame.data)

    def close(self) -> None:
        """Forget everything; happens by itself a minute after the end."""
        self._remove_listener()
        for timer in (self._timer, self._beat, self._forget):
            if timer is not None:
                timer.cancel()
        self._remembered.clear()

    def _on_timer(self) -> None:
        self._timer = None
        if self._held:
            self._timer = self._loop.call_later(self.coalesce_s, self._on_timer)
            self.connection.in_background(self._flush(MORE), "live frame")

    def _on_beat(self) -> None:
        self._beat = self._loop.call_later(BEAT_S, self._on_beat)
        if self._loop.time() - self._last_sent >= BEAT_S - 0.1:
            self.connection.in_background(self._publish(Frame(self.next_chunk, 0, HEARTBEAT, b""), "heartbeat"), "beat")

    async def _flush(self, flag: str) -> None:
        # Taken and handed to the connection without a wait in between, so that the order stays.
        if not self._held and flag == MORE:
            return
        frame = Frame(self._held_first, self.next_chunk - self._held_first, flag, b"".join(self._held))
        self._held.clear()
        self._held_first = self.next_chunk
        limit = min(FRAME_BYTES, self.connection.max_payload - HEAD_BYTES)
        for part in frame.split(limit):
            self._remembered.append(part)
            await self._publish(part, "sent")

    async def _publish(self, frame: Frame, outcome: str) -> None:
        self._last_sent = self._loop.time()
        try:
            await self.connection.client.publish(self.subject, frame.encode())
        except nats.errors.OutboundBufferLimitError:
            outcome = "kept back"  # the buffer for the outage is full; `repeat` sends it after the reconnection
        except (nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError) as error:
            outcome = "lost"
            log.warning("live frame lost", extra={"subject": self.subject, "reason": repr(error)})
        PUBLISHED.labels(outcome).inc()
