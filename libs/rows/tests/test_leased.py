"""The statements of leased rows: who has one writes through its fence, and nobody else."""

from __future__ import annotations

import asyncio
import time

import pytest

from libs.rows.tests.work import claim, enqueue
from popagent_db.pool import Pool
from popagent_db.query import prepare, queries_of
from popagent_rows.leased import End, Holder, Lease, LeasedRows, LeaseLostError, Requeue
from popagent_testing import leased_work
from popagent_testing.leased_work import REQUEST_STOP, WORK, WorkRow, write_effect


async def test_rows_are_claimed_by_priority_then_age_and_never_twice(table: Pool) -> None:
    await enqueue(table, "a", "b", "c", "d")
    await table.execute("update work set priority = 1 where id = 'c'")
    await table.execute("update work set run_at = now() + interval '1 hour' where id = 'd'")
    one, two = Holder.of_this_process(), Holder.of_this_process()

    first = await claim(table, one, 1)
    both = await asyncio.gather(claim(table, one), claim(table, two))

    assert [row.id for row in first] == ["c"]
    assert sorted(row.id for rows in both for row in rows) == ["a", "b"]
    assert first[0].attempt == 1
    assert (first[0].owner, first[0].boot_id) == (one.owner, one.boot_id)


async def test_a_beat_prolongs_what_is_ours_and_names_what_is_not(table: Pool) -> None:
    holder, thief = Holder.of_this_process(), Holder.of_this_process()
    await enqueue(table, "kept", "stolen", "ended", "stopping", "locked")
    rows = {row.id: row for row in await claim(table, holder)}
    async with table.acquire() as conn:
        await WORK.take(conn, rows["stolen"], thief)
        await WORK.settle(conn, rows["ended"], End("completed"))
        await REQUEST_STOP.run(conn, "stopping")

    async with table.transaction() as other, table.acquire() as conn:
        await WORK.fence(other, rows["locked"])
        answers = {answer.id: answer for answer in await WORK.beat(conn, holder, list(rows.values()))}

    assert {name: (a.beaten, a.ours, a.stop_requested) for name, a in answers.items()} == {
        "kept": (True, True, False),
        "stolen": (False, False, False),
        "ended": (False, False, False),
        "stopping": (True, True, True),
        "locked": (False, True, False),  # a fenced write in progress is no loss and holds up nobody
    }


async def test_every_write_of_an_attempt_that_was_taken_over_is_refused(table: Pool) -> None:
    old, new = Holder.of_this_process(), Holder.of_this_process()
    await enqueue(table, "a")
    (row,) = await claim(table, old)
    lease = Lease(WORK, row, time.monotonic())
    async with table.acquire() as conn:
        taken = await WORK.take(conn, row, new)

    for outcome in (End("completed"), Requeue()):
        async with table.acquire() as conn:
            with pytest.raises(LeaseLostError):
                await WORK.settle(conn, row, outcome)
    with pytest.raises(LeaseLostError):
        await write_effect(table, lease)

    assert taken.attempt == 2
    assert await table.fetchval("select count(*) from effects") == 0
    assert await table.fetchval("select owner from work") == new.owner


async def test_an_ended_row_stays_ended(table: Pool) -> None:
    holder = Holder.of_this_process()
    await enqueue(table, "a")
    (row,) = await claim(table, holder)
    async with table.acquire() as conn:
        await WORK.settle(conn, row, End("completed"))

        with pytest.raises(LeaseLostError):
            await WORK.settle(conn, row, Requeue())

    assert await claim(table, holder) == []


async def test_the_local_deadline_ends_before_the_lease(table: Pool) -> None:
    await enqueue(table, "a")
    asked_at = time.monotonic()
    (row,) = await claim(table, Holder.of_this_process())
    lease = Lease(WORK, row, asked_at)
    lease.check()

    lease.deadline = time.monotonic()

    with pytest.raises(LeaseLostError):
        lease.check()
    async with table.acquire() as conn:
        with pytest.raises(LeaseLostError):  # although the database would still accept it
            await lease.run(conn, WORK.let_go)


async def test_a_late_beat_does_not_take_back_a_lease_that_was_let_go(table: Pool) -> None:
    holder = Holder.of_this_process()
    await enqueue(table, "a")
    (row,) = await claim(table, holder)
    async with table.acquire() as conn:
        await WORK.fenced(conn, row, WORK.let_go)

        (answer,) = await WORK.beat(conn, holder, [row])

    assert (answer.beaten, answer.ours) == (False, True)
    assert await table.fetchval("select lease_until <= clock_timestamp() from work where id = 'a'")


async def test_the_statements_fit_the_table(table: Pool) -> None:
    async with table.acquire() as conn:
        assert await prepare(conn, queries_of(leased_work)) == []


@pytest.mark.parametrize(("lease_s", "beat_s"), [(1, 0.5), (1, 0), (10, 5)])
def test_a_lease_too_short_for_two_beats_is_refused(lease_s: float, beat_s: float) -> None:
    with pytest.raises(ValueError, match="two beats"):
        LeasedRows("work", WorkRow, lease_s=lease_s, beat_s=beat_s)


def test_a_table_name_is_checked() -> None:
    with pytest.raises(ValueError, match="not a table"):
        LeasedRows("work; drop table work", WorkRow, lease_s=10, beat_s=3)
