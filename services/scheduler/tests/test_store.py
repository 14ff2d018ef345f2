"""What is looked for each second is found by an index, and a history stays as long as it may be."""

from __future__ import annotations

import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_scheduler import store
from services.scheduler.tests.conftest import Make

ADD_RUNS = """
insert into schedule_runs (schedule_id, planned_at, task_id, asked, outcome)
select $1, timestamptz '2026-01-01' + n * interval '1 minute', $1 || n, false, $2
from generate_series($3::int, $4::int) n
"""


@pytest.mark.parametrize(
    ("wanted", "args", "time"),
    [
        (f"select {store.PROBE_DUE}", (), "next_run_at"),
        (f"select {store.PROBE_HAND_OVER}", (), "try_at"),
        (store.DUE.sql, (50,), "next_run_at"),
        (store.TAKE.sql, (20, 30.0), "try_at"),
    ],
)
async def test_what_is_due_is_found_by_its_time(pool: Pool, wanted: str, args: tuple[object, ...], time: str) -> None:
    async with pool.transaction() as conn:
        await conn.execute("set local enable_seqscan = off")
        plan = await conn.fetch(f"explain (costs off) {wanted}", *args)

    assert any(f"Index Cond: ({time} <= now())" in line[0] for line in plan)


async def test_the_newest_runs_of_each_schedule_are_kept_and_what_is_due(gateway: Bus, make: Make, pool: Pool) -> None:
    long, short = await make(name="Long", enabled=False), await make(name="Short", enabled=False)
    async with pool.transaction() as conn:
        await conn.execute(ADD_RUNS, long.id, "started", 2, 12)
        await conn.execute(ADD_RUNS, short.id, "missed", 1, 3)
        await conn.execute(ADD_RUNS, long.id, "due", 1, 1)

        gone = await store.DROP_OLD.run(conn, 4)
        kept = await conn.fetch("select task_id from schedule_runs order by schedule_id = $1, planned_at", short.id)
        await conn.execute("delete from schedule_runs")

    assert gone == 7
    numbers = [1, 9, 10, 11, 12]
    assert [row[0] for row in kept] == [f"{long.id}{n}" for n in numbers] + [f"{short.id}{n}" for n in (1, 2, 3)]
