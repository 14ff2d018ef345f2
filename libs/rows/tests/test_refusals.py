"""A database that answers and refuses, as in a restore: whatever beats goes on beating."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from popagent_db.pool import Pool
from popagent_rows.leased import End, Holder, Lease, LeasedRows, Outcome
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Worker
from popagent_testing.leased_work import CREATE, ENQUEUE, WorkRow, fail, requeue_expired
from popagent_testing.plugin import PostgresAddress, execute
from popagent_testing.suite_bus import until


async def test_the_pulse_goes_on_after_a_statement_that_fails(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    pulse = Pulse(pool, period_s=0.02)
    woken = asyncio.Event()
    pulse.watch("exists (select 1 from not_restored_yet)", woken.set)
    pulse.start()
    await until(lambda: "rows are not watched" in caplog.text)

    await pool.execute("create table not_restored_yet as select 1")

    async with asyncio.timeout(5):
        await woken.wait()
    await pulse.stop()
    assert caplog.text.count("rows are not watched") == 1


async def test_a_heartbeat_that_is_refused_beats_again_when_it_is_let_in(
    pool: Pool, dsn: str, postgres: PostgresAddress, caplog: pytest.LogCaptureFixture
) -> None:
    await pool.execute(CREATE)
    name = urlsplit(dsn).path.lstrip("/")
    rows = LeasedRows("work", WorkRow, lease_s=30, beat_s=0.1)
    finish = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        await finish.wait()
        return End("completed")

    worker = Worker(rows, pool, Holder.of_this_process(), handler=handle, failed=fail, expired=requeue_expired, slots=1)
    async with pool.acquire() as conn:
        await ENQUEUE.run(conn, "a", "")
    worker.start(Pulse(pool))
    await until(lambda: worker.running == 1)

    await execute(
        postgres.dsn(),
        f'alter database "{name}" allow_connections false',
        f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'",
    )
    await until(lambda: "heartbeat failed" in caplog.text)
    await execute(postgres.dsn(), f'alter database "{name}" allow_connections true')
    before = await pool.fetchval("select lease_until from work")

    async def beaten() -> bool:
        return bool(await pool.fetchval("select lease_until > $1 from work", before))

    await until(beaten)
    finish.set()
    await worker.stop()
    assert await pool.fetchval("select (state, attempt) = ('completed', 1) from work")
