"""Which task is next: priority, then workspaces in turn, one of a key at a time; and several runners."""

from __future__ import annotations

import asyncio
from typing import Any

from popagent_db.pool import Pool
from popagent_rows.leased import End, Holder
from popagent_task_runner.tasks.rows import TASKS, LeasedTask

INSERT = """
insert into tasks (id, source, workspace_id, title, prompt, max_attempts, priority, concurrency_key, run_at)
values ($1, 'user', $2, '', 'p', 3, $3, $4, now() - interval '1 hour' + make_interval(secs => $5))
"""


async def put(pool: Pool, task_id: str, workspace: str, *, priority: int = 0, key: str | None = None) -> None:
    """Store a queued task; the order of the calls is the order of waiting."""
    age = await pool.fetchval("select count(*) from tasks")
    await pool.execute(INSERT, task_id, workspace, priority, key, float(age))


async def claim(pool: Pool, limit: int, holder: Holder | None = None) -> list[LeasedTask]:
    async with pool.acquire() as conn:
        rows = await TASKS.claim(conn, holder or Holder.of_this_process(), limit)
        for row in rows:
            await conn.execute("update tasks set started_at = clock_timestamp() where id = $1", row.id)
    return rows


async def end(pool: Pool, row: LeasedTask) -> None:
    async with pool.acquire() as conn:
        await TASKS.settle(conn, row, End("completed"))


async def test_a_workspace_with_many_tasks_does_not_hold_up_the_others(pool: Pool) -> None:
    for number in range(20):
        await put(pool, f"a{number:02}", "a")
    for workspace in "bc":
        for number in range(2):
            await put(pool, f"{workspace}{number}", workspace)

    served = []
    for _ in range(8):
        (row,) = await claim(pool, 1)
        await end(pool, row)
        served.append(row.workspace_id)

    assert sorted(served[:3]) == ["a", "b", "c"]
    assert sorted(served[3:6]) == ["a", "b", "c"]
    assert served[6:] == ["a", "a"]


async def test_places_are_shared_between_workspaces_within_one_claim_and_with_what_runs(pool: Pool) -> None:
    for number in range(6):
        await put(pool, f"a{number}", "a")
    first = await claim(pool, 2)
    for number in range(3):
        await put(pool, f"b{number}", "b")

    second = await claim(pool, 4)

    assert [row.id for row in first] == ["a0", "a1"]
    # Two of `a` run, so that two of `b` come first; then the one that was never served.
    assert sorted(row.id for row in second) == ["a2", "b0", "b1", "b2"]
    assert [row.id for row in await claim(pool, 1)] == ["a3"]


async def test_priority_comes_before_turns(pool: Pool) -> None:
    await put(pool, "old", "a")
    await put(pool, "other", "b")
    await put(pool, "urgent", "a", priority=5)
    await put(pool, "urgent too", "a", priority=5)

    assert [row.id for row in await claim(pool, 2)] == ["urgent", "urgent too"]


async def test_what_is_not_due_does_not_hold_up_what_is(pool: Pool) -> None:
    for number in range(60):
        await put(pool, f"later{number:02}", "a", priority=9)
    await pool.execute("update tasks set run_at = now() + interval '1 hour'")
    await put(pool, "due", "a")

    assert [row.id for row in await claim(pool, 5)] == ["due"]


async def test_of_one_key_one_task_runs_and_the_rest_of_the_workspace_goes_on(pool: Pool) -> None:
    for number in range(3):
        await put(pool, f"k{number}", "a", key="self-update", priority=1)
    await put(pool, "plain", "a")

    first = await claim(pool, 2)
    second = await claim(pool, 2)
    (keyed,) = (row for row in first + second if row.id == "k0")
    await end(pool, keyed)
    third = await claim(pool, 2)

    assert sorted(row.id for row in first + second) == ["k0", "plain"]
    assert [row.id for row in third] == ["k1"]


async def test_runners_that_claim_at_once_never_share_a_task_nor_a_key(pool: Pool) -> None:
    for number in range(30):
        await put(pool, f"t{number:02}", "abc"[number % 3], key="one" if number % 5 == 0 else None)
    holders = [Holder.of_this_process() for _ in range(2)]

    claimed: list[LeasedTask] = []
    for _ in range(6):
        for rows in await asyncio.gather(*(claim(pool, 3, holder) for holder in holders)):
            claimed += rows

    assert len({row.id for row in claimed}) == len(claimed)
    assert sorted(row.id for row in claimed if int(row.id[1:]) % 5 == 0) == ["t00"]
    assert len(claimed) == 25


async def test_two_runners_share_the_work_and_each_task_runs_once(start: Any, door: Any) -> None:
    runners = [await start(slots=3) for _ in range(2)]

    created = [await door.create(f"sleep 0.05\nanswer {n}", workspace_id=("north", "south")[n % 2]) for n in range(40)]
    for task in created:
        await door.until(task.id, "completed")

    shares = [len(runner.executor.runs) for runner in runners]
    assert sum(shares) == 40
    assert min(shares) >= 8
    assert all(runner.executor.most <= 3 for runner in runners)
