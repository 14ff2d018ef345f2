"""Puts batches into the store; while PostgreSQL is away it waits, and the stream keeps what comes meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from operator import attrgetter
from typing import Any, Final, TypeVar

import asyncpg

from popagent_db.pool import Connection, Pool
from popagent_kit.errors import UnavailableError
from popagent_observability import store
from popagent_observability.records import Batch, LogRow, SpanRow
from popagent_observability.summaries import Addition, additions
from popagent_telemetry import metrics

# Readers always find a free connection beside the writers.
WRITERS: Final = 2
AGAIN_S: Final = (0.2, 0.5, 1.0, 2.0)

SPAN_COLUMNS: Final[Callable[[SpanRow], tuple[Any, ...]]] = attrgetter(
    "day", "trace_id", "span_id", "parent_id", "service", "instance", "name", "kind", "started_at", "ended_at",
    "failed", "status_text", "attributes", "events", "links", "size",
)  # fmt: skip
LOG_COLUMNS: Final[Callable[[LogRow], tuple[Any, ...]]] = attrgetter(
    "day", "id", "at", "service", "level", "logger", "message", "trace_id", "span_id", "attributes"
)

ADDITION: Final[Callable[[Addition], tuple[Any, ...]]] = attrgetter(*(field.name for field in fields(Addition)))

STORED: Final = metrics.counter("popagent_store_records_total", "Records stored for the first time", ("kind",))
SECONDS: Final = metrics.histogram("popagent_store_write_seconds", "One batch into the store")
log = logging.getLogger(__name__)
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Stored:
    """How many records of a batch were new; a repeated batch gives zeros."""

    spans: int
    logs: int


class Storing:
    """Writes batches, at most `WRITERS` at once; any number of processes may do so side by side."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._writing = asyncio.Semaphore(WRITERS)
        self._days: set[date] = set()
        self._away = False
        self._together: list[LogRow] = []
        self._joint: asyncio.Task[None] | None = None
        self._one_joint = asyncio.Lock()

    async def put_record(self, row: LogRow) -> None:
        """Store one log record, in one transaction with all that come while an earlier such transaction goes on."""
        self._together.append(row)
        if self._joint is None:
            self._joint = asyncio.create_task(self._put_together(), name="store records")
        try:
            await asyncio.shield(self._joint)
        except asyncpg.PostgresError as error:
            log.warning("records that came together are stored one by one", extra={"reason": str(error)})
            await self.put(Batch(row.at, logs=[row]))

    async def _put_together(self) -> None:
        async with self._one_joint:
            rows, self._together, self._joint = self._together, [], None
            await self.put(Batch(rows[0].at, logs=rows))

    async def put(self, batch: Batch) -> Stored:
        """Store `batch`, however long PostgreSQL is away; the caller's message stays unacknowledged until then."""
        attempt = 0
        while True:
            try:
                async with self._writing:
                    stored = await self.put_now(batch)
            except UnavailableError as error:
                if not self._away:
                    log.warning("telemetry waits for the store", extra={"reason": error.message})
                self._away = True
                await asyncio.sleep(AGAIN_S[min(attempt, len(AGAIN_S) - 1)])
                attempt += 1
                continue
            if self._away:
                log.info("the store takes telemetry again")
            self._away = False
            return stored

    async def put_now(self, batch: Batch) -> Stored:
        """Store `batch` in one transaction.

        Raises:
            UnavailableError: PostgreSQL does not answer.
        """
        if not batch.spans and not batch.logs:
            return Stored(0, 0)
        days = {row.day for row in batch.spans} | {row.day for row in batch.logs}
        await self._make_days(days)
        try:
            stored = await self._write(batch)
        except asyncpg.CheckViolationError:
            # A day was dropped in the meantime, for its age or for room; what still arrives for it makes it anew.
            self._days -= days
            await self._make_days(days)
            stored = await self._write(batch)
        STORED.labels("span").inc(stored.spans)
        STORED.labels("log").inc(stored.logs)
        return stored

    async def _make_days(self, days: set[date]) -> None:
        """Make missing partitions, each in a transaction of its own, so that their locks are short."""
        for day in sorted(days - self._days):
            async with self._pool.acquire() as connection:
                if await store.MAKE_DAY.value(connection, day):
                    log.info("a new day in the store", extra={"day": day.isoformat()})
            self._days.add(day)

    async def _write(self, batch: Batch) -> Stored:
        with SECONDS.time():
            async with self._pool.transaction() as connection:
                spans = await _put_spans(connection, batch) if batch.spans else []
                logs = await store.PUT_LOGS.all(connection, *columns(batch.logs, LOG_COLUMNS)) if batch.logs else []
                new_spans = Counter(span.day for span, announced in spans if not announced)
                new_logs = Counter(logs)
                for day in sorted(new_spans.keys() | new_logs.keys()):
                    await store.COUNT_DAY.run(connection, day, new_spans[day], new_logs[day])
        return Stored(new_spans.total(), new_logs.total())


async def _put_spans(connection: Connection, batch: Batch) -> list[tuple[SpanRow, bool]]:
    """Store the spans and what they add to their traces; returns what was new or has ended, with `announced`."""
    by_key = {row.key: row for row in batch.spans}
    changed = [
        (by_key[row.trace_id, row.span_id, row.day], row.announced)
        for row in await store.PUT_SPANS.all(connection, *columns(batch.spans, SPAN_COLUMNS))
    ]
    if changed:
        added = [ADDITION(entry) for entry in additions(changed, batch.sent_at)]
        await store.ADD_TO_TRACES.run(connection, *map(list, zip(*added, strict=True)))
    return changed


def columns(rows: Sequence[Row], pick: Callable[[Row], tuple[Any, ...]]) -> list[list[Any]]:
    """Return the rows turned by a quarter: one list a column, as `unnest` takes them."""
    return [list(column) for column in zip(*map(pick, rows), strict=True)]
