"""Events are stored with the change they tell of, and published after its commit, in the order of each aggregate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from popagent_db.pool import Connection, Pool
from popagent_db.query import Query
from popagent_kit.errors import AppError, UnavailableError
from popagent_proto.base import Event
from popagent_proto.matrix import EVENTS
from popagent_rows.pruning import prune
from popagent_rows.pulse import Pulse
from popagent_telemetry import metrics
from popagent_telemetry.tracing import inject

log = logging.getLogger(__name__)

BATCH: Final = 100
KEPT: Final = timedelta(hours=24)
PRUNE_PERIOD_S: Final = 600.0
CHECK_PERIOD_S: Final = 60.0
MEASURE_PERIOD_S: Final = 10.0
PUBLISH_TIMEOUT_S: Final = 5.0
STOP_TIMEOUT_S: Final = 5.0
# Events of so long a time go together. Nobody waits for them, and what was just committed goes on to its first word.
GATHER_S: Final = 0.02
# While events keep coming, those of so long a time: to send costs the same for one and for many.
PACE_S: Final = 0.1
# What is not published by a commit of ours is looked for this much later: an event of a transaction that is not ours,
# one that waits for another relay. It is no second GATHER_S: a gathering that began before the event was added would
# use up a wake given at once, and look before that commit. The pulse covers what takes longer.
NUDGE_S: Final = 0.02

PENDING: Final = metrics.gauge("popagent_outbox_pending", "Events stored and not yet acknowledged by the stream")
OLDEST: Final = metrics.gauge("popagent_outbox_oldest_seconds", "Age of the oldest event that is not yet acknowledged")
SENT: Final = metrics.counter("popagent_outbox_sent_total", "Events acknowledged by the stream")
REPUBLISHED: Final = metrics.counter("popagent_outbox_republished_total", "Events sent again after the stream was lost")


class PublishPort(Protocol):
    """Publishes one event and returns its sequence in the stream; raises unless the stream acknowledged it."""

    async def __call__(self, subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
        """Wait for the acknowledgement."""
        ...


StreamStatePort = Callable[[], Awaitable[tuple[str, int]]]
"""Returns what changes when the stream is made anew (its creation time, for example), and its last sequence."""


@dataclass(frozen=True)
class OutboxRow:
    """An event that waits."""

    id: str
    position: int
    subject: str
    aggregate_id: str
    payload: str
    headers: dict[str, str]
    held_back: bool
    """An older event of the aggregate is with another relay."""


@dataclass(frozen=True)
class StreamMark:
    """How far our events got in which incarnation of the stream."""

    identity: str
    last_seq: int
    losses: int


@dataclass(frozen=True)
class Backlog:
    """What waits; `oldest_s` is 0 when nothing does."""

    pending: int
    oldest_s: float


INSERT: Final = Query(
    None,
    """
    insert into outbox (id, subject, aggregate_id, payload, headers)
    values ($1, $2, $3, $4, $5)
    """,
)


def insert_from(source: str, first: int) -> str:
    """Return SQL that stores an event beside the change it tells of, in one statement with it.

    `source` is a relation of that statement which has a row when the change was made; the event's five arguments, see
    `row_of`, begin with `first`. Wake the relay after it.
    """
    arguments = ", ".join(f"${number}" for number in range(first, first + 5))
    return f"insert into outbox (id, subject, aggregate_id, payload, headers) select {arguments} from {source}"  # noqa: S608


LOCK_UNSENT: Final = Query(
    OutboxRow,
    """
    with ours as materialized (
        select id, position, subject, aggregate_id, payload, headers
        from outbox
        where sent_at is null
        order by position
        limit $1
        for update skip locked
    ), theirs as (
        select aggregate_id, min(position) as position
        from outbox
        where sent_at is null
          and position < (select max(position) from ours)
          and id not in (select id from ours)
        group by aggregate_id
    )
    select ours.id, ours.position, ours.subject, ours.aggregate_id, ours.payload, ours.headers,
           theirs.position is not null and theirs.position < ours.position as held_back
    from ours
    left join theirs on theirs.aggregate_id = ours.aggregate_id
    order by ours.position
    """,
)
# Moves the mark of the stream $2 as well, and says whether that is still the one of identity $4 and $5 losses.
MARK_SENT: Final = Query(
    bool,
    """
    with sent as (
        update outbox set sent_at = clock_timestamp() where id = any($1)
    ), advanced as (
        update stream_marks
        set last_seq = greatest(last_seq, $3), noted_at = clock_timestamp()
        where stream = $2 and identity = $4 and losses = $5
        returning stream
    )
    select exists (select 1 from advanced)
    """,
)
UNSEND: Final = Query(None, "update outbox set sent_at = null where sent_at > now() - $1::interval")
PRUNE: Final = Query(
    None,
    """
    delete from outbox
    where id in (select id from outbox where sent_at < now() - $1::interval limit $2)
    """,
)
BACKLOG: Final = Query(
    Backlog,
    """
    select count(*) as pending,
           coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest_s
    from outbox
    where sent_at is null
    """,
)
MARK: Final = Query(StreamMark, "select identity, last_seq, losses from stream_marks where stream = $1")
LOCK_MARK: Final = Query(StreamMark, MARK.sql + " for update")
SET_MARK: Final = Query(
    StreamMark,
    """
    insert into stream_marks (stream, identity, last_seq)
    values ($1, $2, $3)
    on conflict (stream) do update
    set identity = excluded.identity, last_seq = excluded.last_seq,
        losses = stream_marks.losses + 1, noted_at = clock_timestamp()
    returning identity, last_seq, losses
    """,
)


def row_of(event: Event) -> tuple[str, str, str, str, dict[str, str]]:
    """Return the columns of an event, with the trace that is current here."""
    headers: dict[str, str] = {}
    inject(headers)
    return event.event_id, event.to_subject(), event.aggregate_id, event.encode().decode(), headers


class StreamLostError(AppError):
    """Another replica noticed that the stream was lost while these events were published; they are sent again."""

    code = "stream_lost"
    http_status = 503
    retryable = True


class Outbox:
    """The events of one service.

    Several replicas may run a relay: rows are locked while they are published, and an event is held back while an
    older one of its aggregate is locked by another relay. Nats-Msg-Id is the event's id, so that an event sent twice
    within two minutes is stored once; later than that the consumer's inbox decides.
    """

    def __init__(
        self, pool: Pool, publish: PublishPort, *, stream_state: StreamStatePort | None = None, stream: str = EVENTS
    ) -> None:
        self._pool = pool
        self._publish = publish
        self._stream_state = stream_state
        self._stream = stream
        self._woken = asyncio.Event()
        self._check_due = stream_state is not None
        self._mark: StreamMark | None = None
        self._relay: asyncio.Task[None] | None = None
        self._added: dict[Connection, bool] = {}
        self._failing = False
        self._stopping = False

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Hold a transaction; what was added in it is published soon after the commit."""
        async with self._pool.transaction() as connection:
            self._added[connection] = False
            try:
                yield connection
            finally:
                added = self._added.pop(connection)
        if added:
            self.wake()

    async def add(self, connection: Connection, *events: Event) -> None:
        """Store `events`, in this order, in the caller's transaction, with the trace that is current here."""
        await INSERT.run_many(connection, [row_of(event) for event in events])
        if connection in self._added:
            self._added[connection] = True
        else:
            self._wake_soon()

    def wake(self) -> None:
        """Look for unsent events now."""
        self._woken.set()

    def _wake_soon(self) -> None:
        # One timer each time: an event that waits for its commit must lose its own to nobody else's.
        asyncio.get_running_loop().call_later(NUDGE_S, self.wake)

    def stream_may_be_new(self) -> None:
        """Compare the stream with the recorded mark before the next event goes out; call it after a reconnect."""
        self._check_due = self._stream_state is not None
        self._woken.set()

    def start(self, pulse: Pulse) -> None:
        """Start the relay; what a crash left is sent first."""
        self._relay = asyncio.create_task(self._run(), name="outbox relay")
        self.wake()
        pulse.watch("exists (select 1 from outbox where sent_at is null)", self.wake)
        pulse.every(PRUNE_PERIOD_S, "outbox prune", self.prune)
        pulse.every(CHECK_PERIOD_S, "stream check", self._request_check)
        pulse.every(MEASURE_PERIOD_S, "outbox size", self.backlog)

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Send what is left for up to `timeout_s`, then end; the rest waits in its rows."""
        if self._relay is None:
            return
        self._stopping = True
        self.wake()
        _, late = await asyncio.wait([self._relay], timeout=timeout_s)
        if late:
            log.info("events are left in the outbox at stop")
            self._relay.cancel()
            await asyncio.gather(self._relay, return_exceptions=True)

    async def backlog(self) -> Backlog:
        """Return what waits, and set the gauges."""
        async with self._pool.acquire() as connection:
            backlog = await BACKLOG.one(connection)
        PENDING.set(backlog.pending)
        OLDEST.set(backlog.oldest_s)
        return backlog

    async def prune(self, kept: timedelta = KEPT) -> int:
        """Delete what was sent longer than `kept` ago, and return how many; nothing unsent is ever deleted."""
        return await prune(self._pool, PRUNE, kept)

    async def check_stream(self) -> int:
        """Mark the events of the last 24 h as unsent when the stream is another one or went back.

        Returns how many; raises what `stream_state` raises.
        """
        if self._stream_state is None:
            return 0
        async with self._pool.acquire() as connection:
            before = await MARK.first(connection, self._stream)
        # The mark was read first: while we ask, another replica may publish and move both forward.
        identity, last_seq = await self._stream_state()
        again = 0
        async with self._pool.transaction() as connection:
            mark = await LOCK_MARK.first(connection, self._stream)
            lost = before is not None and (before.identity != identity or last_seq < before.last_seq)
            if mark is None:
                mark = await SET_MARK.one(connection, self._stream, identity, last_seq)
            elif lost and before is not None and mark.losses == before.losses:
                mark = await SET_MARK.one(connection, self._stream, identity, last_seq)
                again = await UNSEND.run(connection, KEPT)
        self._mark = mark
        if again:
            REPUBLISHED.inc(again)
            log.warning("the stream was lost; its events are published again", extra={"events": again})
        return again

    async def _request_check(self) -> None:
        self.stream_may_be_new()

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        next_at = clock()
        while True:
            await self._woken.wait()
            if not self._stopping:
                await asyncio.sleep(max(GATHER_S, next_at - clock()))
            self._woken.clear()
            await self.flush()
            if self._stopping:
                return
            next_at = clock() + PACE_S

    async def flush(self) -> None:
        """Send until nothing is left or something fails."""
        while await self._send_batch() == BATCH:
            pass

    async def _send_batch(self) -> int:
        """Send up to BATCH events and return how many were acknowledged."""
        try:
            if self._check_due:
                self._check_due = False
                await self.check_stream()
            async with self._pool.transaction() as connection:
                found = await LOCK_UNSENT.all(connection, BATCH)
                rows = [row for row in found if not row.held_back]
                sent = await self._publish_all(rows)
                if sent:
                    await self._mark_sent(connection, sent)
        except Exception as error:  # noqa: BLE001 (whatever database or bus raise, the rows wait and are tried again)
            self._note_failure(error)
            return 0
        if len(rows) < len(found):
            self._wake_soon()
        SENT.inc(len(sent))
        if rows and len(sent) == len(rows):
            self._failing = False
        return len(sent)

    async def _mark_sent(self, connection: Connection, sent: dict[str, int]) -> None:
        identity, losses = (self._mark.identity, self._mark.losses) if self._mark else (None, None)
        moved = await MARK_SENT.value(connection, list(sent), self._stream, max(sent.values()), identity, losses)
        if self._mark is not None and not moved:
            raise StreamLostError

    async def _publish_all(self, rows: Sequence[OutboxRow]) -> dict[str, int]:
        """Publish aggregates side by side and each one's events in order; returns the sequences of what arrived."""
        by_aggregate: dict[str, list[OutboxRow]] = {}
        for row in rows:
            by_aggregate.setdefault(row.aggregate_id, []).append(row)
        sent: dict[str, int] = {}
        await asyncio.gather(*(self._publish_in_order(group, sent) for group in by_aggregate.values()))
        return sent

    async def _publish_in_order(self, rows: Sequence[OutboxRow], sent: dict[str, int]) -> None:
        for row in rows:
            try:
                async with asyncio.timeout(PUBLISH_TIMEOUT_S):
                    sent[row.id] = await self._publish(row.subject, row.payload.encode(), row.id, row.headers)
            except Exception as error:  # noqa: BLE001 (whatever the bus raises, the row waits and is tried again)
                self._note_failure(error)
                return

    def _note_failure(self, error: BaseException) -> None:
        self._check_due = self._stream_state is not None  # a stream that comes back may be another one
        if not self._failing:
            where = "database" if isinstance(error, UnavailableError) else "bus"
            reason = f"{type(error).__name__}: {error}"
            log.warning("events wait in the outbox", extra={"at": where, "reason": reason})
        self._failing = True
