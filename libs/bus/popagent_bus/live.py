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
from popagent_bus.reading import LiveGapError, LiveReader, stored_frames
from popagent_kit.errors import InvalidInputError, TooLargeError
from popagent_telemetry import metrics

COALESCE_S: Final = 0.008
BEAT_S: Final = 3.0
# So long after its end a stream is still repeated when NATS comes back.
REMEMBERED_AFTER_END_S: Final = 60.0
FRAME_BYTES: Final = 512 * 1024

PUBLISHED: Final = metrics.counter("popagent_live_frames_total", "Live frames by what became of them", ("outcome",))
log = logging.getLogger(__name__)

__all__ = ["END", "HEARTBEAT", "MORE", "Frame", "LiveGapError", "LivePublisher", "LiveReader", "stored_frames"]


class LivePublisher:
    """The owner's end of one live stream. Never raises for an absent NATS: the frames are repeated from memory.

    It remembers every frame until `forget_before`, and for a minute after the end. `held` is asked right before each
    frame leaves: False keeps it back, for an owner that was frozen until another one had its work. After the end it is
    not asked any more, since only the holder can have committed that.
    """

    def __init__(
        self,
        connection: Connection,
        subject: str,
        *,
        coalesce_s: float = COALESCE_S,
        held: Callable[[], bool] = lambda: True,
    ) -> None:
        check_subject(subject)
        self._is_held = held
        self.connection = connection
        self.subject = subject
        self.next_chunk: int | None = None
        self.coalesce_s = coalesce_s
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._held_first = 0
        self._timer: asyncio.TimerHandle | None = None
        self._remembered: deque[Frame] = deque()
        self._last_sent = self._loop.time()
        self._beat = self._loop.call_later(BEAT_S, self._on_beat)
        self._remove_listener: Callable[[], None] = connection.on_reconnect(self.repeat)

    def send(self, first: int, count: int, sse_bytes: bytes, end: bool = False) -> None:
        """Publish chunks; `first` must follow the last one. At once when nothing went out for 8 ms, else collected.

        Any number may come first (a turn taken over). With `end` the stream is over; send it only after the commit.

        Raises:
            InvalidInputError: A number out of order, or chunks after the end.
            TooLargeError: One chunk is larger than a message may be.
        """
        if self.next_chunk is None:
            self.next_chunk = self._held_first = first
        if self.ended or first != self.next_chunk:
            raise InvalidInputError(f"chunk {first} of {self.subject} is not the next, {self.next_chunk}, or too late")
        if len(sse_bytes) > self.connection.max_payload and count == 1:
            raise TooLargeError(f"a chunk of {len(sse_bytes)} bytes is more than a message may have")
        self._held.append(sse_bytes)
        self.next_chunk += count
        if end:
            self.ended = True
            self._beat.cancel()
            self._flush(END)
        elif self._timer is None:
            self._flush(MORE)
            self._timer = self._loop.call_later(self.coalesce_s, self._on_timer)

    def forget_before(self, chunk: int) -> None:
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
        """Beat no more. After the end the frames are remembered for another minute, else forgotten now."""
        for timer in (self._timer, self._beat):
            if timer is not None:
                timer.cancel()
        if self.ended:
            self._loop.call_later(REMEMBERED_AFTER_END_S, self._forget)
        else:
            self._forget()

    def _forget(self) -> None:
        self._remove_listener()
        self._remembered.clear()

    def _on_timer(self) -> None:
        self._timer = None
        if self._held:
            self._timer = self._loop.call_later(self.coalesce_s, self._on_timer)
            self._flush(MORE)

    def _on_beat(self) -> None:
        self._beat = self._loop.call_later(BEAT_S, self._on_beat)
        if self._loop.time() - self._last_sent >= BEAT_S - 0.1:
            self._post(Frame(self.next_chunk or 0, 0, HEARTBEAT, b""), "heartbeat")

    def _flush(self, flag: str) -> None:
        assert self.next_chunk is not None
        frame = Frame(self._held_first, self.next_chunk - self._held_first, flag, b"".join(self._held))
        self._held.clear()
        self._held_first = self.next_chunk
        for part in frame.split(min(FRAME_BYTES, self.connection.max_payload)):
            self._remembered.append(part)
            self._post(part, "sent")

    def _post(self, frame: Frame, outcome: str) -> None:
        # Tasks start in the order they are made, and the client takes a message before it waits: the order stays.
        self._last_sent = self._loop.time()
        self.connection.in_background(self._publish(frame, outcome), "live frame")

    async def _publish(self, frame: Frame, outcome: str) -> None:
        if not self.ended and not self._is_held():
            PUBLISHED.labels("not ours").inc()
            return
        try:
            await self.connection.client.publish(self.subject, frame.encode())
        except nats.errors.OutboundBufferLimitError:
            outcome = "kept back"  # the buffer for the outage is full; `repeat` sends it after the reconnection
        except (nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError) as error:
            outcome = "lost"
            log.warning("live frame lost", extra={"subject": self.subject, "reason": repr(error)})
        PUBLISHED.labels(outcome).inc()
