"""Real worker processes, frozen and killed; a real PostgreSQL, stopped under work."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from popagent_db.pool import Pool, open_pool
from popagent_kit.ids import new_id
from popagent_rows.leased import End, Holder, Lease, LeasedRows, Outcome
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Worker
from popagent_testing.leased_work import CREATE, ENQUEUE, LEASE_S, WORK, WorkRow, fail, requeue_expired
from popagent_testing.servers import PostgresServer

TAKEOVER_S = LEASE_S + 5

Start = Callable[[float], subprocess.Popen[bytes]]


@pytest.fixture
def start_worker(dsn: str) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(work_s: float) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", "popagent_testing.leased_work", dsn, str(work_s)])
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


async def until_true(pool: Pool, condition: str, timeout_s: float = 20) -> None:
    async with asyncio.timeout(timeout_s):
        while not await pool.fetchval(f"select {condition}"):
            await asyncio.sleep(0.02)


async def enqueue(pool: Pool, *rows: tuple[str, str]) -> None:
    async with pool.acquire() as conn:
        await ENQUEUE.run_many(conn, rows)


async def test_a_frozen_holder_writes_nothing_after_the_takeover(table: Pool, start_worker: Start) -> None:
    frozen = start_worker(LEASE_S / 2)
    await enqueue(table, ("a", ""))
    await until_true(table, "exists (select 1 from starts)")
    frozen.send_signal(signal.SIGSTOP)

    start_worker(0.0)
    await until_true(table, "exists (select 1 from work where state = 'completed')")
    frozen.send_signal(signal.SIGCONT)
    # Once the thawed process has taken another row, it had time to write what it was not allowed to.
    owner = await table.fetchval("select owner from starts where attempt = 1 and id = 'a'")
    async with asyncio.timeout(20):
        while not await table.fetchval("select exists (select 1 from effects where owner = $1 and id <> 'a')", owner):
            await enqueue(table, (new_id(), ""))
            await asyncio.sleep(0.02)

    effects = await table.fetch("select attempt from effects where id = 'a'")
    assert [row["attempt"] for row in effects] == [2]


async def test_rows_of_a_killed_worker_are_taken_over_within_the_lease_and_five_seconds(
    table: Pool, start_worker: Start
) -> None:
    start_worker(0.02)
    start_worker(0.02)
    await enqueue(table, *((f"r{number}", "die" if number == 10 else "") for number in range(30)))

    await until_true(table, "exists (select 1 from starts where id = 'r10')")
    died_at = time.monotonic()
    await until_true(table, "not exists (select 1 from work where state <> 'completed')", TAKEOVER_S)

    assert time.monotonic() - died_at <= TAKEOVER_S
    assert await table.fetchval("select count(*) from effects") == 30
    assert await table.fetchval("select count(distinct id) from effects") == 30


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_two_hundred_kills_leave_no_row_stuck_and_double_no_effect(table: Pool, start_worker: Start) -> None:
    for round_number in range(20):
        workers = [start_worker(0.05) for _ in range(2)]
        await enqueue(table, *((f"{round_number}-{number}", "die" if number < 10 else "") for number in range(20)))
        async with asyncio.timeout(60):
            while await table.fetchval("select count(*) from work where state <> 'completed'"):
                workers = [w if w.poll() is None else start_worker(0.05) for w in workers]
                await asyncio.sleep(0.05)
        for worker in workers:
            worker.kill()

    assert await table.fetchval("select count(*) from effects") == 400
    assert await table.fetchval("select count(distinct id) from effects") == 400


async def test_a_stopped_postgresql_cancels_work_before_its_lease_ends_and_work_goes_on_when_it_is_back(
    private_postgres: PostgresServer,
) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=4)
    await pool.execute(CREATE)
    held_when_cancelled: list[bool] = []
    began = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        if lease.row.id == "long" and lease.row.attempt == 1:
            try:
                began.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                held_when_cancelled.append(lease.held)
                raise
        return End("completed")

    pulse = Pulse(pool, period_s=0.1)
    worker = Worker(WORK, pool, Holder.of_this_process(), handler=handle, failed=fail, expired=requeue_expired, slots=4)
    pulse.start()
    worker.start(pulse)
    await enqueue(pool, ("long", ""))
    worker.wake()
    await began.wait()

    await asyncio.to_thread(private_postgres.stop, True)
    async with asyncio.timeout(TAKEOVER_S):
        while not held_when_cancelled:
            await asyncio.sleep(0.01)
    await asyncio.to_thread(private_postgres.start)
    await enqueue(pool, ("next", ""))
    await until_true(pool, "not exists (select 1 from work where state <> 'completed')", TAKEOVER_S)

    assert held_when_cancelled == [False]
    assert await pool.fetchval("select attempt from work where id = 'long'") == 2
    await worker.stop(drain_s=0)
    await pulse.stop()
    await pool.close()


async def test_a_short_absence_of_postgresql_costs_no_attempt(private_postgres: PostgresServer) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=4)
    await pool.execute(CREATE)
    finish = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        await finish.wait()
        return End("completed")

    pulse = Pulse(pool, period_s=0.1)
    patient = LeasedRows("work", WorkRow, lease_s=10, beat_s=0.5)
    worker = Worker(
        patient, pool, Holder.of_this_process(), handler=handle, failed=fail, expired=requeue_expired, slots=4
    )
    pulse.start()
    worker.start(pulse)
    await enqueue(pool, ("a", ""))
    worker.wake()
    await until_true(pool, "exists (select 1 from work where state = 'running')")

    await asyncio.to_thread(private_postgres.stop, True)
    finish.set()
    await asyncio.to_thread(private_postgres.start)

    await until_true(pool, "exists (select 1 from work where state = 'completed')", TAKEOVER_S)
    assert await pool.fetchval("select attempt from work") == 1
    await worker.stop(drain_s=0)
    await pulse.stop()
    await pool.close()


async def test_a_loop_that_is_blocked_longer_than_its_lease_loses_its_row_and_writes_nothing(
    table: Pool, start_worker: Start, pulse: Pulse
) -> None:
    ended = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        try:
            time.sleep(LEASE_S * 2.5)  # a defect: nothing of ours may block the loop
            await asyncio.sleep(0.2)
            return End("failed")
        finally:
            ended.set()

    worker = Worker(
        WORK, table, Holder.of_this_process(), handler=handle, failed=fail, expired=requeue_expired, slots=1
    )
    worker.start(pulse)
    await enqueue(table, ("a", ""))
    await until_true(table, "exists (select 1 from work)")
    worker.wake()
    async with asyncio.timeout(20):
        other = None
        while not ended.is_set():
            if other is None:
                other = start_worker(0.0)
            await asyncio.sleep(0.01)

    await until_true(table, "exists (select 1 from work where state <> 'running')")
    await worker.stop(drain_s=1)
    assert await table.fetchval("select state from work") == "completed"
    # On a busy machine the other process may lose its own first lease, too; the blocked one never writes.
    assert await table.fetchval("select attempt from effects") >= 2
