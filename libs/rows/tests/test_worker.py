"""A worker claims rows into its places, runs them under their leases, and judges those that others left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from libs.rows.tests.work import claim, enqueue, until_state
from popagent_db.pool import Connection, Pool
from popagent_rows import worker as worker_module
from popagent_rows.leased import End, Holder, Lease, Outcome, Requeue, Take, Verdict
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Worker
from popagent_testing.leased_work import REQUEST_STOP, WORK, WorkRow, fail, requeue_expired, write_effect

Make = Callable[..., Worker[WorkRow]]


@pytest.fixture
async def make_worker(table: Pool, pulse: Pulse) -> AsyncIterator[Make]:
    made: list[Worker[WorkRow]] = []

    def make(handler: Callable[[Lease[WorkRow]], Coroutine[Any, Any, Outcome]], **more: Any) -> Worker[WorkRow]:
        options: dict[str, Any] = {"failed": fail, "expired": requeue_expired, "slots": 4} | more
        worker = Worker(WORK, table, Holder.of_this_process(), handler=handler, **options)
        worker.start(pulse)
        made.append(worker)
        return worker

    yield make
    for worker in made:
        await worker.stop(drain_s=0, interrupt_s=1)


async def expire(pool: Pool, row_id: str) -> None:
    await pool.execute("update work set lease_until = clock_timestamp() - interval '1 ms' where id = $1", row_id)


async def test_a_request_to_stop_is_told_to_the_holder_when_it_looks(table: Pool, make_worker: Make) -> None:
    told = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        await lease.stop.wait()
        told.set()
        return End("stopped")

    worker = make_worker(handle)
    await enqueue(table, "running")
    worker.wake()
    await until_state(table, "running", "running")

    async with table.acquire() as conn:
        await REQUEST_STOP.run(conn, "running")
    worker.look_for_stops()
    async with asyncio.timeout(WORK.beat_s / 2):
        await told.wait()

    await until_state(table, "running", "stopped")


async def test_a_row_enqueued_without_a_wake_is_found_by_the_pulse(table: Pool, make_worker: Make) -> None:
    async def handle(lease: Lease[WorkRow]) -> Outcome:
        return End("completed")

    make_worker(handle)
    await asyncio.sleep(0.05)

    await enqueue(table, *(f"r{number}" for number in range(20)))

    for number in range(20):
        await until_state(table, f"r{number}", "completed")


async def test_no_more_rows_run_than_there_are_slots(table: Pool, make_worker: Make) -> None:
    most = 0

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        nonlocal most
        most = max(most, worker.running)
        await asyncio.sleep(0.01)
        return End("completed")

    await enqueue(table, *(f"r{number:02}" for number in range(30)))
    worker = make_worker(handle, slots=3)

    await until_state(table, "r29", "completed")
    assert most == 3


async def test_a_worker_may_get_more_places_and_fewer_while_it_runs(table: Pool, make_worker: Make) -> None:
    over = asyncio.Event()
    ended: list[str] = []

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        await over.wait()
        ended.append(lease.row.id)
        return End("completed")

    await enqueue(table, *(f"r{number}" for number in range(6)))
    worker = make_worker(handle, slots=0)
    worker.resize(3)
    async with asyncio.timeout(10):
        while worker.running < 3:
            await asyncio.sleep(0.01)

    worker.resize(1)
    fewer = worker.reserve()
    over.set()
    for number in range(6):
        await until_state(table, f"r{number}", "completed")

    assert fewer is None
    assert ended == [f"r{number}" for number in range(6)]
    async with asyncio.timeout(10):
        while (slot := worker.reserve()) is None:
            await asyncio.sleep(0.01)
    assert worker.reserve() is None
    slot.free()


async def test_a_long_row_keeps_its_lease_and_runs_once(table: Pool, make_worker: Make) -> None:
    starts = 0

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        nonlocal starts
        starts += 1
        await asyncio.sleep(WORK.lease_s * 1.5)
        lease.check()
        return End("completed")

    make_worker(handle)
    make_worker(handle)
    await enqueue(table, "a")

    await until_state(table, "a", "completed")
    assert starts == 1


async def test_work_goes_on_when_every_lease_ran_out_while_the_machine_slept(table: Pool, make_worker: Make) -> None:
    over = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        await over.wait()
        lease.check()
        return End("completed")

    make_worker(handle)
    await enqueue(table, "a")
    await until_state(table, "a", "running")

    for _ in range(5):
        await table.execute("update work set lease_until = now() - interval '1 hour'")
        async with asyncio.timeout(WORK.lease_s):
            while await table.fetchval("select lease_until < now() from work"):
                await asyncio.sleep(0.01)
    over.set()

    await until_state(table, "a", "completed")
    assert await table.fetchval("select attempt from work") == 1


async def test_work_whose_row_was_taken_is_cancelled_within_a_beat(table: Pool, make_worker: Make) -> None:
    cancelled = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert lease.ending == "lost"
            cancelled.set()
            raise
        return None

    make_worker(handle)
    await enqueue(table, "a")
    await until_state(table, "a", "running")
    await table.execute("update work set attempt = 9, owner = gen_random_uuid()")

    async with asyncio.timeout(WORK.beat_s * 3):
        await cancelled.wait()


async def test_a_handler_that_raises_is_judged_and_its_slot_is_free_again(table: Pool, make_worker: Make) -> None:
    async def handle(lease: Lease[WorkRow]) -> Outcome:
        if lease.row.attempt == 1:
            raise ValueError("first attempt")
        return End("completed")

    make_worker(handle, failed=lambda lease, error: Requeue(0.05), slots=1)
    await enqueue(table, "a", "b")

    await until_state(table, "a", "completed")
    await until_state(table, "b", "completed")


async def test_stop_drains_then_interrupts_while_the_lease_is_still_held(table: Pool, make_worker: Make) -> None:
    async def handle(lease: Lease[WorkRow]) -> Outcome:
        if lease.row.id == "short":
            await asyncio.sleep(0.2)
            return End("completed")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert lease.ending == "interrupted"
            if lease.row.id == "deaf":
                raise
            lease.check()
            return End("interrupted")
        return None

    worker = make_worker(handle)
    await enqueue(table, "short", "long", "deaf")
    worker.wake()
    for row_id in ("short", "long", "deaf"):
        await until_state(table, row_id, "running")
    stopping = asyncio.create_task(worker.stop(drain_s=WORK.lease_s * 1.5, interrupt_s=1))
    await enqueue(table, "late")
    worker.wake()

    await stopping

    rows = await table.fetch("select id, state, lease_until <= clock_timestamp() as expired from work order by id")
    assert [(row["id"], row["state"], row["expired"]) for row in rows] == [
        ("deaf", "running", True),  # a sweeper may take it at once
        ("late", "queued", None),
        ("long", "interrupted", None),
        ("short", "completed", None),
    ]


async def test_an_expired_row_can_be_taken_by_the_sweeper_to_be_ended_with_care(table: Pool, make_worker: Make) -> None:
    async def take(_: Connection, row: WorkRow) -> Verdict:
        return Take()

    async def bury(lease: Lease[WorkRow]) -> Outcome:
        await write_effect(table, lease)
        return None

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        raise AssertionError("nothing is queued")

    dead = Holder.of_this_process()
    await enqueue(table, "a")
    await claim(table, dead)
    await expire(table, "a")

    make_worker(handle, expired=take, taken=bury)

    await until_state(table, "a", "completed")
    assert await table.fetchval("select attempt from effects") == 2


async def test_one_row_with_a_failing_policy_does_not_hold_up_the_others(table: Pool, make_worker: Make) -> None:
    async def judge(conn: Connection, row: WorkRow) -> Verdict:
        if row.id == "a":
            await conn.execute("select 1 / 0")
        return End("failed")

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        return None

    await enqueue(table, "a", "b")
    await claim(table, Holder.of_this_process())
    await expire(table, "a")
    await expire(table, "b")

    make_worker(handle, expired=judge)

    await until_state(table, "b", "failed")
    assert await table.fetchval("select state from work where id = 'a'") == "running"


async def test_rows_whose_policies_all_fail_are_judged_once_in_a_sweep(
    table: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "SWEEP_BATCH", 2)
    judged: list[str] = []

    async def judge(_: Connection, row: WorkRow) -> Verdict:
        judged.append(row.id)
        raise ValueError("no policy for this")

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        raise AssertionError("nothing is queued")

    await enqueue(table, "a", "b")
    await claim(table, Holder.of_this_process())
    await expire(table, "a")
    await expire(table, "b")
    worker = Worker(WORK, table, Holder.of_this_process(), handler=handle, failed=fail, expired=judge, slots=1)

    async with asyncio.timeout(5):
        await worker._sweep()

    assert sorted(judged) == ["a", "b"]


async def test_a_row_that_is_begun_after_its_deadline_is_lost_and_not_worked_on(table: Pool, make_worker: Make) -> None:
    ran = asyncio.Event()

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        ran.set()
        return End("completed")

    worker = make_worker(handle, slots=1)
    assert worker.reserve() is not None
    row = WorkRow(
        id="a", attempt=1, owner=worker.holder.owner, boot_id=worker.holder.boot_id, stop_requested=False, name=""
    )
    worker.adopt(row, time.monotonic() - WORK.lease_s)
    async with asyncio.timeout(5):
        while worker.reserve() is None:
            await asyncio.sleep(0.01)

    assert not ran.is_set()
    assert worker.running == 0


async def test_a_row_inserted_running_uses_a_reserved_slot(table: Pool, make_worker: Make) -> None:
    ran: list[str] = []

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        ran.append(lease.row.id)
        await asyncio.sleep(WORK.lease_s * 1.2)
        return End("completed")

    worker = make_worker(handle, slots=1)
    slot = worker.reserve()
    assert slot is not None
    none_left = worker.reserve()
    async with table.transaction() as conn:
        await conn.execute(
            "insert into work (id, state, attempt, owner, boot_id, lease_until)"
            " values ('a', 'running', 1, $1, $2, clock_timestamp() + interval '1 second')",
            worker.holder.owner,
            worker.holder.boot_id,
        )
    row = WorkRow(
        id="a", attempt=1, owner=worker.holder.owner, boot_id=worker.holder.boot_id, stop_requested=False, name=""
    )
    slot.start(row)

    await until_state(table, "a", "completed")
    async with asyncio.timeout(5):
        while (unused := worker.reserve()) is None:
            await asyncio.sleep(0.01)
    unused.free()
    unused.free()
    assert none_left is None
    assert ran == ["a"]
    assert worker.reserve() is not None
    assert worker.reserve() is None
