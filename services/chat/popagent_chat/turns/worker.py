"""The turns that this process runs, and those that others left behind."""

from __future__ import annotations

import asyncio
import logging

import orjson

from popagent_bus.live import LivePublisher
from popagent_chat.deps import RunDeps
from popagent_chat.turns import store
from popagent_chat.turns.recovery import recover
from popagent_chat.turns.run import carry_out
from popagent_chat.turns.store import TURNS, LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_db.pool import Connection
from popagent_kit.clock import wire_time
from popagent_proto import matrix
from popagent_rows.leased import Holder, Lease, Outcome, Requeue, Take, Verdict
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Slot, Worker
from popagent_uistream.chunks import Chunk, start

log = logging.getLogger(__name__)

WAKE = matrix.wake_subject("chat", "turns")


class TurnWorker:
    """Claims turns into slots, runs them, and ends those whose lease ran out."""

    def __init__(self, deps: RunDeps, holder: Holder, *, slots: int) -> None:
        self._deps = deps
        self._waking: set[asyncio.Task[None]] = set()
        self.holder = holder
        self._worker: Worker[LeasedTurn] = Worker(
            TURNS,
            deps.pool,
            holder,
            handler=self._work,
            failed=_put_back,
            expired=_take,
            slots=slots,
        )

    async def start(self, pulse: Pulse) -> None:
        """Begin; a wake-up from any replica makes this one look for due turns and for stops."""
        self._worker.start(pulse)
        await self._deps.bus.on_wake(WAKE, self._look)

    async def stop(self, grace_s: float) -> None:
        """Take no new turn; running ones get `grace_s`, then end interrupted with their text."""
        await self._worker.stop(drain_s=grace_s)

    def reserve(self) -> Slot[LeasedTurn] | None:
        """Return a free slot for a turn that is about to be stored, if there is one."""
        return self._worker.reserve()

    def wake(self) -> None:
        """Make every replica look at its rows, this one at once."""
        self._worker.wake()
        self._worker.look_for_stops()
        task = asyncio.create_task(self._deps.bus.wake(WAKE), name="wake turns")
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    @property
    def running(self) -> int:
        """How many turns run here."""
        return self._worker.running

    async def _look(self) -> None:
        self._worker.wake()
        self._worker.look_for_stops()

    async def _work(self, lease: Lease[LeasedTurn]) -> Outcome:
        stream = self._stream(lease)
        try:
            # What an earlier attempt had said is not said again.
            await (carry_out if lease.row.attempt == 1 else recover)(self._deps, lease, stream)
        finally:
            stream.close()
        return None

    def _stream(self, lease: Lease[LeasedTurn]) -> TurnStream:
        turn = lease.row

        async def checkpoint(message: orjson.Fragment, next_chunk: int) -> None:
            async with self._deps.pool.acquire() as conn:
                await lease.run(conn, store.CHECKPOINT, message, next_chunk)

        return TurnStream(
            LivePublisher(self._deps.bus, matrix.live_subject("chat", "turns", turn.id), held=lambda: lease.held),
            checkpoint,
            opening=_opening(turn),
            message=turn.checkpoint,
            next_chunk=turn.next_chunk,
        )


def _opening(turn: LeasedTurn) -> Chunk:
    """Return the first chunk: what the message says of itself from the beginning."""
    metadata = {"turnId": turn.id, "createdAt": wire_time(turn.created_at)}
    if turn.trace_id is not None:
        metadata["traceId"] = turn.trace_id
    return start(message_id=turn.assistant_message_id, message_metadata=metadata)


def _put_back(lease: Lease[LeasedTurn], error: Exception) -> Outcome:
    """A turn whose end could not be written is tried again, a few times (see recovery)."""
    log.error("a turn could not be ended", exc_info=error, extra={"turn": lease.row.id})
    return Requeue(delay_s=1.0)


async def _take(_: Connection, turn: LeasedTurn) -> Verdict:
    log.warning("a turn lost its owner", extra={"turn": turn.id, "attempt": turn.attempt})
    return Take()
