"""The transcript of a running attempt: kept in memory, written through the fence, the newest 256 records stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from popagent_db.pool import Connection, Pool
from popagent_db.query import Query
from popagent_kit import json, tasks
from popagent_kit.errors import UnavailableError
from popagent_kit.text import excerpt
from popagent_proto.task_runner.activity import (
    ACTIVITY_CHARACTERS,
    CALLS_A_RECORD,
    RECORDS_KEPT,
    Activity,
    ActivityCall,
    ActivityRecord,
)
from popagent_rows.leased import FENCE, Lease, LeaseLostError
from popagent_task_runner.tasks.causes import storable
from popagent_task_runner.tasks.executor import Call, Note
from popagent_task_runner.tasks.rows import LeasedTask
from popagent_telemetry import redact, redact_value

log = logging.getLogger(__name__)

# Words of a running step wait this long, everything else is gathered for a moment only.
TEXT_EVERY_S: Final = 1.0
GATHER_S: Final = 0.02
RETRY_S: Final = 0.5
SETTLE_S: Final = 5.0
# Of all the arguments, results and errors in one record.
CALL_CHARACTERS: Final = 24_000
PAGE_BYTES: Final = 600_000
# As JSON writes the one character that PostgreSQL cannot hold.
NUL: Final = "\\u0000"


@dataclass(frozen=True)
class Mark:
    """How far a transcript got."""

    seq: int
    revision: int


@dataclass(frozen=True)
class StoredRecord:
    """A record as it is stored."""

    seq: int
    revision: int
    attempt: int
    at: datetime
    body: dict[str, Any]

    def view(self) -> ActivityRecord:
        """Return what the wire shows."""
        return ActivityRecord(
            seq=self.seq, revision=self.revision, attempt=self.attempt, at=self.at, **Activity(**self.body).model_dump()
        )


# None when there is no such task.
MARK: Final = Query(
    Mark,
    """
    select coalesce(max(a.seq), 0) as seq, coalesce(max(a.revision), 0) as revision
    from tasks t
    left join task_activity a on a.task_id = t.id
    where t.id = $1
    group by t.id
    """,
)

# $4 is the last record that makes room; false when another attempt has the task.
APPEND: Final = Query(
    bool,
    f"""
    with held as (
        select id, attempt from tasks where {FENCE} for no key update
    ), gone as (
        delete from task_activity a using held where a.task_id = held.id and a.seq <= $4
    ), written as (
        insert into task_activity (task_id, seq, revision, attempt, body, size)
        select held.id, r.seq, r.revision, held.attempt, r.body::json, octet_length(r.body)
        from held, unnest($5::bigint[], $6::bigint[], $7::text[]) as r (seq, revision, body)
        on conflict (task_id, seq) do update
        set revision = excluded.revision, body = excluded.body, size = excluded.size
    )
    select exists (select 1 from held)
    """,  # noqa: S608 (the fence is a constant)
)

# Newest first, before the record $2 if it is given; $3 records and $4 bytes at most, one in any case.
NEWEST: Final = Query(
    StoredRecord,
    """
    select seq, revision, attempt, at, body
    from (
        select seq, revision, attempt, at, body, size, sum(size) over (order by seq desc) as total
        from task_activity
        where task_id = $1 and ($2::bigint is null or seq < $2)
        order by seq desc
        limit $3
    ) x
    where total - size < $4
    order by seq desc
    """,
)
# What was written since the revision $2, in the order of writing.
SINCE: Final = Query(
    StoredRecord,
    """
    select seq, revision, attempt, at, body
    from (
        select seq, revision, attempt, at, body, size, sum(size) over (order by revision) as total
        from task_activity
        where task_id = $1 and revision > $2
        order by revision
        limit $3
    ) x
    where total - size < $4
    order by revision
    """,
)


def nobody_follows(_: str) -> None:
    """Do nothing."""


class Transcript:
    """Of one attempt; `open` it first, `settle` it before the attempt's end is stored."""

    def __init__(
        self,
        pool: Pool,
        lease: Lease[LeasedTask],
        *,
        text_every_s: float = TEXT_EVERY_S,
        grew: Callable[[str], None] = nobody_follows,
    ) -> None:
        """Write under `lease`; `grew` is called with the task's id after each write, and must not wait."""
        self._pool = pool
        self._grew = grew
        self._lease = lease
        self._text_every_s = text_every_s
        self._seq = self._revision = 0
        self._running: dict[tuple[str, int], tuple[int, Note]] = {}
        self._waiting: dict[int, Note] = {}
        self._urgent = asyncio.Event()
        self._any = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    async def open(self, conn: Connection) -> None:
        """Go on after what earlier attempts wrote."""
        mark = await MARK.one(conn, self._lease.row.id)
        self._seq, self._revision = mark.seq, mark.revision
        await tasks.end(self._writer)
        self._writer = tasks.lasting(self._write, f"transcript {self._lease.row.id}")

    def note(self, note: Note) -> None:
        """Add a record; it is stored within moments."""
        self._running.pop((note.run_id, note.step), None)
        self._add(note)
        self._urgent.set()

    def said(self, delta: Note) -> None:
        """Let the text of the running step grow; a full record is followed by another one."""
        key = (delta.run_id, delta.step)
        seq, known = self._running.get(key, (0, None))
        if known is None or len(known.text) + len(delta.text) > ACTIVITY_CHARACTERS:
            seq = self._add(delta)
            self._running[key] = (seq, delta)
            return
        grown = Note("text", known.text + delta.text, delta.run_id, known.agent_id, known.step)
        self._running[key] = (seq, grown)
        self._put(seq, grown)

    async def settle(self) -> None:
        """Store what waits, for a few seconds at most: the end of the attempt does not depend on it."""
        await tasks.end(self._writer)
        try:
            async with asyncio.timeout(SETTLE_S):
                while self._waiting:
                    if not await self._flushed():
                        await asyncio.sleep(RETRY_S)
        except TimeoutError:
            log.warning("the end of a transcript was not stored", extra={"task": self._lease.row.id})

    async def close(self) -> None:
        """Store nothing more."""
        await tasks.end(self._writer)

    def _add(self, note: Note) -> int:
        self._seq += 1
        self._put(self._seq, note)
        return self._seq

    def _put(self, seq: int, note: Note) -> None:
        self._waiting[seq] = note
        while len(self._waiting) > RECORDS_KEPT:
            del self._waiting[min(self._waiting)]
        self._any.set()

    async def _write(self) -> None:
        while True:
            await self._any.wait()
            try:
                async with asyncio.timeout(self._text_every_s):
                    await self._urgent.wait()
                await asyncio.sleep(GATHER_S)
            except TimeoutError:
                pass  # only words came
            self._any.clear()
            self._urgent.clear()
            if not await self._flushed():
                self._any.set()
                await asyncio.sleep(RETRY_S)

    async def _flushed(self) -> bool:
        """Write what waits; false when PostgreSQL is away. What cannot be ours any more is dropped."""
        async with self._flushing:
            batch, self._waiting = self._waiting, {}
            kept = {seq: note for seq, note in sorted(batch.items()) if seq > self._seq - RECORDS_KEPT}
            try:
                await self._append(kept)
            except UnavailableError as error:
                log.info("a transcript waits for the database", extra={"reason": error.message})
                self._waiting = batch | self._waiting
                return False
            except asyncio.CancelledError:
                # The writer was ended by `settle`, which stores what waits: records that are there are the same.
                self._waiting = batch | self._waiting
                raise
            except LeaseLostError:
                return True
        return True

    async def _append(self, notes: dict[int, Note]) -> None:
        row = self._lease.row
        revisions = range(self._revision + 1, self._revision + 1 + len(notes))
        self._revision += len(notes)
        bodies = [json.dumps(bounded(note).model_dump(mode="json")).decode() for note in notes.values()]
        self._lease.check()
        async with self._pool.acquire() as conn:
            held = await APPEND.value(
                conn, row.id, row.attempt, row.owner, self._seq - RECORDS_KEPT, list(notes), list(revisions), bodies
            )
        if not held:
            raise LeaseLostError(f"task {row.id}: attempt {row.attempt} was taken over")
        self._grew(row.id)


def bounded(note: Note) -> Activity:
    """Return the record as it may be stored: without secrets, cut where it is long."""
    calls = list(note.calls)[:CALLS_A_RECORD]
    each = min(ACTIVITY_CHARACTERS, CALL_CHARACTERS // (3 * max(1, len(calls))))
    return Activity(
        kind=note.kind,
        agent_id=None if note.agent_id is None else storable(note.agent_id, 64),
        step=max(0, note.step),
        text=_clean(note.text, ACTIVITY_CHARACTERS),
        finish_reason=None if note.finish_reason is None else storable(note.finish_reason, 100),
        calls=[_call(call, each) for call in calls],
    )


def _call(call: Call, limit: int) -> ActivityCall:
    return ActivityCall(
        call_id=storable(call.call_id, 200),
        tool=storable(call.tool, 200),
        arguments=_arguments(call.arguments, limit),
        result=None if call.result is None else _clean(call.result, limit),
        error=None if call.error is None else _clean(call.error, limit),
        status=call.status,
    )


def _arguments(value: Any, limit: int) -> Any:
    if value is None:
        return None
    try:
        text = json.dumps(redact_value(value)).decode()
    except (TypeError, ValueError):  # half characters, for example
        text = repr(value)
        return _clean(text, limit)
    if len(text) > limit or NUL in text:
        return _clean(text.replace(NUL, ""), limit)
    return json.loads(text.encode())


def _clean(text: str, limit: int) -> str:
    return storable(excerpt(redact(text), limit), limit)
