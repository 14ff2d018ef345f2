"""What is too old, or too much, goes in whole days; a day is dropped in the time it takes to drop a table."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from typing import Final

from popagent_db.pool import Pool
from popagent_kit.clock import now
from popagent_observability import store
from popagent_telemetry import metrics

PERIOD_S: Final = 600.0
TRACES_AT_ONCE: Final = 5_000
MB: Final = 1024 * 1024

SIZE: Final = metrics.gauge("popagent_store_bytes", "Size of the store on disk, indexes included")
log = logging.getLogger(__name__)


async def keep_small(pool: Pool, retention_days: int, max_bytes: int) -> list[date]:
    """Drop days older than `retention_days`, then the oldest ones while the store is larger than `max_bytes`.

    Returns what was dropped; today's day stays in any case. May run in several processes at once.
    """
    today = now().date()
    async with pool.acquire() as connection:
        days = await store.KNOWN_DAYS.all(connection)
    dropped = [day for day in days if day < today - timedelta(days=retention_days)]
    for day in dropped:
        await _drop(pool, day)
    for day in days[len(dropped) :]:
        if await size_bytes(pool) <= max_bytes or day >= today:
            break
        log.warning("the store is larger than it may be; a day goes early", extra={"day": day.isoformat()})
        await _drop(pool, day)
        dropped.append(day)
    SIZE.set(await size_bytes(pool))
    return dropped


async def size_bytes(pool: Pool) -> int:
    """Return the size of all tables of the store, with indexes."""
    async with pool.acquire() as connection:
        return await store.SIZE_BYTES.value(connection)


async def _drop(pool: Pool, day: date) -> None:
    """Drop one day, and the summaries of traces that were over by its end, a few thousand at a time."""
    async with pool.transaction() as connection:
        gone = await store.DROP_DAY.value(connection, day)
    end = datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC)
    traces = 0
    while True:
        async with pool.acquire() as connection:
            removed = await store.DROP_TRACES.run(connection, end, TRACES_AT_ONCE)
        traces += removed
        if removed < TRACES_AT_ONCE:
            break
    if gone:
        log.info("a day of traces was dropped", extra={"day": day.isoformat(), "traces": traces})
