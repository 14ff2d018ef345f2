"""The bytes of one turn, from its live frames: unparsed, in order, to their end or to an honest interruption."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from popagent_bus import Bus
from popagent_bus.live import END, LiveGapError, LiveReader
from popagent_gateway.streams.mailbox import Mailbox
from popagent_gateway.streams.sse import HEARTBEAT_S
from popagent_kit import tasks
from popagent_kit.errors import AppError, NotFoundError
from popagent_proto.chat.turns import SnapshotTurn
from popagent_proto.matrix import live_subject
from popagent_uistream import chunks
from popagent_uistream.encode import DONE, HEARTBEAT, encode

log = logging.getLogger(__name__)

# Owners beat every 3 s; after four missed beats the state is asked for, once.
SILENCE_S: Final = 12.0
STATE_TIMEOUT_S: Final = 2.0
# Bytes that may wait for a slow client; beyond, the subscription is dropped and the rest comes from the stream's store.
WAITING_BYTES: Final = 256 * 1024

RESTART: Final = "The server is restarting. The answer goes on; open the chat again to see it."
SILENT: Final = "The part of popagent that writes this answer went silent. Open the chat again to see what it stored."
MISSED: Final = "A part of this answer did not arrive. Open the chat again to see all of it."
RUNNING: Final = frozenset({"queued", "running"})


def turn_subject(turn_id: str) -> str:
    """Return where the frames of a turn go."""
    return live_subject("chat", "turns", turn_id)


@dataclass(frozen=True)
class Said:
    """Ready bytes of the chunks before `next_chunk`."""

    data: bytes
    next_chunk: int
    last: bool


@dataclass(frozen=True)
class Broken:
    """The frames cannot be read on; `text` says why, for a person."""

    text: str


@dataclass(frozen=True)
class Left:
    """The client is gone."""


@dataclass(frozen=True)
class DoorCloses:
    """The process ends; the turn does not."""


Item = Said | Broken | Left | DoorCloses


def interruption(text: str) -> bytes:
    """Return the end of a stream whose turn is not known to be over; a client that knows the mark resumes by itself."""
    mark = chunks.data("connection", {"resumable": True}, transient=True)
    return encode(mark) + encode(chunks.error(text)) + DONE


class TurnFeed:
    """Follows one turn for one client from `next_chunk` on, after `prefix` (what a snapshot said before it)."""

    kind = "turn"

    def __init__(
        self,
        bus: Bus,
        session_id: str,
        turn_id: str,
        *,
        prefix: bytes = b"",
        next_chunk: int = 0,
        is_new: bool = False,
    ) -> None:
        self._bus = bus
        self._session_id = session_id
        self._turn_id = turn_id
        self._prefix = prefix
        self._written = next_chunk
        self._read = next_chunk
        self._mailbox: Mailbox[Item] = Mailbox()
        self._waiting_bytes = 0
        self._left = False
        # The id of a new turn was made here: nothing of it can be stored yet.
        self._reader = LiveReader(bus, turn_subject(turn_id), next_chunk, replay=not is_new)
        self._pump: asyncio.Task[None] | None = None

    async def subscribe(self) -> None:
        """Listen from now on: before the turn is started, so that its first frame needs no replay."""
        try:
            await self._reader.open()
        except BaseException:
            await self.release()
            raise

    def leave(self) -> None:
        """Stop writing; the turn goes on."""
        self._left = True
        self._mailbox.put_first(Left())

    def close(self) -> None:
        """End with a word and [DONE]; the turn goes on."""
        self._mailbox.put_first(DoorCloses())

    async def release(self) -> None:
        """Give back the subscription of a feed that is not followed any further."""
        await tasks.end(self._pump)
        await self._reader.close()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the prefix, then frames as they come, heartbeats in silence, and an end in every case but `leave`."""
        self._pump = asyncio.create_task(self._read_frames(), name="frames of a turn")
        if self._prefix:
            yield self._prefix
        async for data in self._follow():
            yield data

    async def _follow(self) -> AsyncIterator[bytes]:
        asked_at = 0.0
        while not self._left:
            item = await self._mailbox.get(HEARTBEAT_S)
            match item:
                case Said(data, next_chunk, last):
                    self._waiting_bytes -= len(data)
                    self._written = next_chunk
                    if last:
                        yield data if data.endswith(DONE) else data + DONE
                        return
                    yield data
                case Left():
                    return
                case DoorCloses():
                    yield interruption(RESTART)
                    return
                case Broken(text):
                    yield interruption(text)
                    return
                case None:
                    now = asyncio.get_running_loop().time()
                    if now - max(self._reader.heard_at, asked_at) < SILENCE_S:
                        yield HEARTBEAT
                        continue
                    end = await self._ask_why_silent()
                    if end is not None:
                        yield end
                        return
                    asked_at = asyncio.get_running_loop().time()
                    yield HEARTBEAT

    async def _ask_why_silent(self) -> bytes | None:
        """Ask once, without retry; return the end of the stream, or None when the turn is alive."""
        query = SnapshotTurn(session_id=self._session_id, turn_id=self._turn_id)
        try:
            turn = await self._bus.ask(query, timeout_s=STATE_TIMEOUT_S, patience_s=0)
        except NotFoundError:
            return interruption(MISSED)
        except AppError as error:
            log.warning("turn %s is silent and nobody knows its state: %s", self._turn_id, error.message)
            return interruption(SILENT)
        if len(self._mailbox):
            return None  # frames came while we asked
        if turn.state not in RUNNING or turn.next_chunk > self._written:
            return interruption(MISSED)
        return None

    async def _read_frames(self) -> None:
        try:
            while not await self._read_until_full():
                # The client is slower than the turn: nothing is kept for it here, the stream's store has it all.
                await self._reader.close()
                await self._mailbox.emptied()
                self._reader = LiveReader(self._bus, turn_subject(self._turn_id), self._read)
                await self._reader.open()
        except LiveGapError as error:
            log.warning("turn %s cannot be followed on: %s", self._turn_id, error.message)
            self._mailbox.put(Broken(MISSED))
        except Exception:
            log.exception("turn %s cannot be followed on", self._turn_id)
            self._mailbox.put(Broken(SILENT))

    async def _read_until_full(self) -> bool:
        """Return True after the last frame, False when too much waits for the client."""
        async for frame in self._reader:
            self._read = frame.next
            self._waiting_bytes += len(frame.data)
            self._mailbox.put(Said(frame.data, frame.next, last=frame.flag == END))
            if self._waiting_bytes > WAITING_BYTES and frame.flag != END:
                return False
        return True
