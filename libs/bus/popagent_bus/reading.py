"""Live streams of turns and tasks, reading side: every chunk once and in order, whatever NATS went through."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Self

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from popagent_bus import frames
from popagent_bus.connection import Connection, unsubscribe
from popagent_bus.frames import END, HEARTBEAT, Frame
from popagent_kit.errors import UnavailableError
from popagent_proto.matrix import live_stream
from popagent_telemetry import metrics

# After joining, the last frame may have passed before the subscription stood and not be stored yet: looked for so late.
LOOK_AFTER_JOIN_S: Final = (0.03, 0.1, 0.3, 1.0)
# The owner sends something every 3 s. When it is silent for longer, a frame may have been lost.
LOOK_WHEN_SILENT_S: Final = 4.0
LOOK_IN_HOLE_S: Final = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25)
HOLE_CEILING_S: Final = 10.0
AHEAD_FRAMES: Final = 2_000
QUEUED_FRAMES: Final = 4_096
# Bytes that were received and not yet read, and bytes that wait behind a hole; one frame fits always.
HELD_BYTES: Final = 4 * 1024 * 1024
POKE: Final = b""

HOLES: Final = metrics.counter("popagent_live_holes_total", "Holes in live streams by outcome", ("outcome",))
log = logging.getLogger(__name__)


class LiveGapError(UnavailableError):
    """Chunks of this stream are gone; start again from the stored snapshot."""

    code = "live_gap"


class LiveReader:
    """Frames of one stream from chunk `from_chunk` on: `async for frame in reader`, or `next(timeout_s)`.

    Open it before the work is asked for and nothing is missed; with `replay=False` nothing stored is looked for at
    first, which is right when the reader made the id itself. Ends after the frame with the end flag.
    """

    def __init__(self, connection: Connection, subject: str, from_chunk: int = 0, *, replay: bool = True) -> None:
        self.connection = connection
        self.subject = subject
        self.stream = live_stream(subject.split(".")[1])
        self.expected = from_chunk
        self.ended = False
        self.heard_at = 0.0
        self._replay = replay
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUED_FRAMES)
        self._arrived_bytes = 0
        self._ready: deque[Frame] = deque()
        self._ahead: dict[int, Frame] = {}
        self._ahead_bytes = 0
        self._stored_from = 1
        self._look_at: float | None = None
        self._looks_after_join: deque[float] = deque()
        self._hole_since: float | None = None
        self._hole_looks = 0
        self._subscription: Subscription | None = None
        self._remove_listener: Callable[[], None] = lambda: None

    async def open(self) -> Self:
        """Subscribe; frames are kept from now on."""
        loop = asyncio.get_running_loop()

        async def take(message: Msg) -> None:
            self._arrived_bytes += len(message.data)
            while self._arrived.full() or (self._arrived_bytes > HELD_BYTES and not self._arrived.empty()):
                self._arrived_bytes -= len(self._arrived.get_nowait() or b"")  # found again in the stream
            self._arrived.put_nowait(message.data)

        self._subscription = await self.connection.subscribe(self.subject, take)
        self._remove_listener = self.connection.on_reconnect(self._on_reconnect)
        self.heard_at = loop.time()
        if self._replay:
            self._look_at = loop.time()
            self._looks_after_join.extend(loop.time() + delay for delay in LOOK_AFTER_JOIN_S)
        else:
            self._look_at = loop.time() + LOOK_WHEN_SILENT_S
        return self

    async def close(self) -> None:
        """Unsubscribe."""
        self._remove_listener()
        if self._subscription is not None:
            await unsubscribe(self._subscription)
            self._subscription = None

    def wake(self) -> None:
        """Make a waiting `next` return None now, at a shutdown for example."""
        if not self._arrived.full():
            self._arrived.put_nowait(None)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Frame:
        while not (self.ended and not self._ready):
            if (frame := await self.next(60)) is not None:
                return frame
        raise StopAsyncIteration

    async def next(self, timeout_s: float) -> Frame | None:
        """Return the next frame; None after `timeout_s` without one, after `wake`, or when `ended`.

        `heard_at` (loop time) tells when the owner was last heard, heartbeats included.

        Raises:
            LiveGapError: Chunks are missing and did not come back within 10 s.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + timeout_s
        while True:
            if self._ready:
                return self._ready.popleft()
            if self.ended:
                return None
            now = loop.time()
            if self._look_at is not None and now >= self._look_at:
                await self._look()
                continue
            if now >= give_up_at:
                return None
            due = give_up_at if self._look_at is None else min(give_up_at, self._look_at)
            try:
                async with asyncio.timeout(due - now):
                    data = await self._arrived.get()
            except TimeoutError:
                continue
            if data is None:
                return None
            self._arrived_bytes -= len(data)
            if data is not POKE:
                self._hear(data)

    async def _on_reconnect(self) -> None:
        # The stream may have been made anew, with numbers from 1.
        self._stored_from = 1
        self._look_at = asyncio.get_running_loop().time()
        self._looks_after_join.extend(self._look_at + delay for delay in LOOK_AFTER_JOIN_S)
        if self._arrived.empty():
            self._arrived.put_nowait(POKE)

    def _hear(self, data: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.heard_at = now
        try:
            frame = frames.decode(data)
        except ValueError:
            log.warning("not a live frame", extra={"subject": self.subject})
            return
        self._feed(frame)
        if self.ended:
            return
        if self._hole_since is None:
            self._look_at = self._looks_after_join[0] if self._looks_after_join else now + LOOK_WHEN_SILENT_S

    def _feed(self, frame: Frame) -> bool:
        """Take a frame from wherever: known is dropped, the next one is ready, a later one opens a hole.

        Returns False when there was no room for it.
        """
        if frame.first > self.expected:
            kept = self._keep_ahead(frame)
            if self._hole_since is None:
                now = asyncio.get_running_loop().time()
                self._hole_since, self._hole_looks, self._look_at = now, 0, now
            return kept
        self._accept(frame)
        while self._ahead and not self.ended:
            reached = [first for first in self._ahead if first <= self.expected]
            if not reached:
                break
            for first in sorted(reached):
                known = self._ahead.pop(first)
                self._ahead_bytes -= len(known.data)
                self._accept(known)
        if self._hole_since is not None and not self._ahead:
            HOLES.labels("filled").inc()
            self._hole_since = None
        return True

    def _keep_ahead(self, frame: Frame) -> bool:
        """Remember a frame that came too early; returns False for one too many, which is read again when it is due."""
        known = self._ahead.get(frame.first)
        if frame.flag == HEARTBEAT or (known is not None and known.next >= frame.next):
            return True
        more = len(frame.data) - (len(known.data) if known else 0)
        if len(self._ahead) >= AHEAD_FRAMES or self._ahead_bytes + more > HELD_BYTES:
            return False
        self._ahead[frame.first] = frame
        self._ahead_bytes += more
        return True

    def _accept(self, frame: Frame) -> None:
        if self.ended or frame.flag == HEARTBEAT:
            return
        rest = frame.after(self.expected)
        if rest.first != self.expected:  # wholly known, and older than the next chunk
            if frame.flag != END:
                return
            # Who ended the stream knew less of it than we saw: nothing follows what was read.
            rest = Frame(self.expected, 0, END, b"")
        self.expected = rest.next
        self.ended = frame.flag == END
        if rest.count or self.ended:
            self._ready.append(rest)

    async def _look(self) -> None:
        """Read what the stream stored since the last look, and say when to look again."""
        loop = asyncio.get_running_loop()
        more = False
        try:
            more = await self._read_stored()
        except UnavailableError as error:
            log.debug("live stream cannot be read now", extra={"subject": self.subject, "reason": error.message})
        now = loop.time()
        while self._looks_after_join and self._looks_after_join[0] <= now:
            self._looks_after_join.popleft()
        if more:
            self._look_at = now
        elif self._hole_since is not None:
            if now - self._hole_since > HOLE_CEILING_S:
                HOLES.labels("lost").inc()
                raise LiveGapError(f"chunk {self.expected} of {self.subject} is gone")
            self._look_at = now + LOOK_IN_HOLE_S[min(self._hole_looks, len(LOOK_IN_HOLE_S) - 1)]
            self._hole_looks += 1
        elif self._looks_after_join:
            self._look_at = self._looks_after_join[0]
        else:
            self._look_at = now + LOOK_WHEN_SILENT_S

    async def _read_stored(self) -> bool:
        """Read a page, at most 4 MiB, so that a long stream is not held in memory; returns whether more follows."""
        page = await self.connection.direct_get(self.stream, self.subject, self._stored_from)
        for message in page.messages:
            try:
                if not self._feed(frames.decode(message.data)):
                    return False  # the rest of the page is read again, when the hole before it is filled
            except ValueError:
                log.warning("not a live frame", extra={"subject": self.subject})
            self._stored_from = message.seq + 1
        return bool(page.messages) and page.pending > 0


async def stored_frames(connection: Connection, subject: str, from_chunk: int = 0) -> AsyncIterator[Frame]:
    """Yield what the stream has now of `subject` from `from_chunk` on, each chunk once and in order, to the first hole.

    Raises:
        UnavailableError: The stream cannot be read now.
    """
    stream = live_stream(subject.split(".")[1])
    expected, from_seq = from_chunk, 1
    ahead: dict[int, Frame] = {}
    while True:
        page = await connection.direct_get(stream, subject, from_seq)
        for message in page.messages:
            frame = frames.decode(message.data)
            if frame.flag != HEARTBEAT and frame.next > expected:
                ahead[frame.first] = frame
            while reached := [first for first in ahead if first <= expected]:
                rest = ahead.pop(min(reached)).after(expected)
                if rest.count:
                    expected = rest.next
                    yield rest
        if not page.messages or not page.pending:
            return
        from_seq = page.messages[-1].seq + 1
