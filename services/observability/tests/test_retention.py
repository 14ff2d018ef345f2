from __future__ import annotations

from datetime import timedelta
from time import perf_counter

import pytest

from popagent_db.pool import Pool
from popagent_kit.clock import now
from popagent_kit.errors import UnavailableError
from popagent_observability import retention
from popagent_observability.storing import Storing

from .conftest import batch, log_line, nanoseconds, span, trace_id

ENDLESS = 2**60
PARTITIONS = "inhparent in ('spans'::regclass, 'logs'::regclass)"


async def fill(storing: Storing, days: range) -> None:
    """Store one trace with a span and a log record in each of `days` before today."""
    for age in days:
        at = now() - timedelta(days=age)
        await storing.put(
            batch(span(traceId=trace_id(age), at=at), logs=[log_line("m", at=at)], sentAt=nanoseconds(at))
        )


async def kept(pool: Pool) -> tuple[int, int, int, int]:
    counts = [await pool.fetchval(f"select count(*) from {table}") for table in ("days", "spans", "logs", "traces")]
    return counts[0], counts[1], counts[2], counts[3]


async def test_days_older_than_the_retention_are_dropped_whole(pool: Pool, storing: Storing) -> None:
    await fill(storing, range(6))

    dropped = await retention.keep_small(pool, 3, ENDLESS)

    today = now().date()
    assert dropped == [today - timedelta(days=5), today - timedelta(days=4)]
    assert await kept(pool) == (4, 4, 4, 4)
    assert await pool.fetchval(f"select count(*) from pg_inherits where {PARTITIONS}") == 8


async def test_a_store_that_is_too_large_loses_its_oldest_days_but_never_today(pool: Pool, storing: Storing) -> None:
    await fill(storing, range(4))
    full = await retention.size_bytes(pool)

    some = await retention.keep_small(pool, 14, full - 1)
    rest = await retention.keep_small(pool, 14, 1)

    assert len(some) == 1
    assert len(rest) == 2
    assert await kept(pool) == (1, 1, 1, 1)


async def test_a_trace_that_still_goes_on_keeps_its_summary(pool: Pool, storing: Storing) -> None:
    began = now() - timedelta(days=2)
    await storing.put(batch(span(1, at=began, running=True), span(2, 1)))

    await retention.keep_small(pool, 1, ENDLESS)

    assert await pool.fetchval("select count(*) from traces") == 1


async def test_a_day_of_many_spans_goes_as_a_whole_and_not_span_by_span(pool: Pool, storing: Storing) -> None:
    at = now() - timedelta(days=9)
    for start in range(1, 10_001, 1_000):
        spans = [span(number, at=at, attributes={"a": "x" * 200}) for number in range(start, start + 1_000)]
        await storing.put(batch(*spans, sentAt=nanoseconds(at)))
    full = await pool.fetchval(f"select count(*) from pg_inherits where {PARTITIONS}")

    dropped = await retention.keep_small(pool, 3, ENDLESS)

    assert len(dropped) == 1
    assert full - await pool.fetchval(f"select count(*) from pg_inherits where {PARTITIONS}") == 2
    assert await kept(pool) == (0, 0, 0, 0)


async def test_a_day_that_is_being_read_is_dropped_later_and_holds_nobody_up(pool: Pool, storing: Storing) -> None:
    await fill(storing, range(3))

    async with pool.transaction() as reader:
        await reader.fetchval("select count(*) from spans")
        began = perf_counter()
        with pytest.raises(UnavailableError):
            await retention.keep_small(pool, 1, ENDLESS)
        waited = perf_counter() - began
    later = await retention.keep_small(pool, 1, ENDLESS)

    assert waited < 3
    assert len(later) == 1
