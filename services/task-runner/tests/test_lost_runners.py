"""Real runner processes, killed, frozen and stopped: nothing stuck, nothing lost, no effect twice."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from popagent_db.pool import Pool
from popagent_testing.servers import NatsServer

Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn(dsn: str, suite_nats: NatsServer) -> Iterator[Spawn]:
    """Return `spawn(boot_id, slots)`: a runner process; without a boot it belongs to no suite."""
    spawned: list[subprocess.Popen[bytes]] = []

    def spawning(boot_id: str = "-", slots: int = 4) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "popagent_testing.task_running", dsn, suite_nats.url, boot_id, str(slots)]
        spawned.append(subprocess.Popen(command))
        return spawned[-1]

    yield spawning
    for process in spawned:
        process.kill()
        process.wait()


async def until_true(pool: Pool, condition: str, *args: object, timeout_s: float = 20) -> None:
    async with asyncio.timeout(timeout_s):
        while not await pool.fetchval(f"select {condition}", *args):
            await asyncio.sleep(0.02)


RUNS = "exists (select 1 from tasks where id = $1 and state = 'running' and started_attempt = attempt)"


async def test_a_task_that_kills_its_runner_three_times_is_dead_lettered_and_those_beside_it_are_not(
    start: Any, door: Any, spawn: Spawn, pool: Pool
) -> None:
    boot = str(uuid4())
    living = await start(slots=0)  # takes and sweeps, and runs none
    poison = await door.create("sleep 0.3\ndie")
    others = [await door.create("sleep 0.4") for _ in range(3)]

    process = spawn(boot)
    async with asyncio.timeout(60):
        while await pool.fetchval("select count(*) from tasks where state in ('queued', 'running')"):
            if process.poll() is not None:
                process = spawn(boot)
            await pool.execute("update tasks set run_at = now() where state = 'queued' and run_at > now()")
            await asyncio.sleep(0.05)
    task = await door.get(poison.id)

    assert living.worker.running == 0
    assert (task.state, task.attempt_count, task.max_attempts) == ("dead-letter", 3, 3)
    assert task.last_error_class == "runner-lost"
    assert "the process that ran it was gone each time" in (task.explanation or "")
    assert [(await door.get(other.id)).state for other in others] == ["completed"] * 3


async def until_acted(pool: Pool, task_id: str) -> None:
    await until_true(pool, "exists (select 1 from effects where task_id = $1)", task_id)


@pytest.mark.full
async def test_what_had_acted_is_not_repeated_when_its_runner_is_killed(
    door: Any, spawn: Spawn, pool: Pool, start: Any
) -> None:
    await start(works=False)
    first = spawn(str(uuid4()))
    created = await door.create("act letter\n1: sleep 60\nanswer sent")
    await until_acted(pool, created.id)

    first.kill()
    spawn(str(uuid4()))
    remediation = await door.remediation_of(created.id)
    await door.until(remediation, "completed")
    task = await door.until(created.id, "completed")
    lost = next(event for verb, event in await door.until_told(created.id, 6) if verb == "stopped")

    assert (lost["task"]["state"], lost["errorClass"]) == ("failed", "restart")
    assert (task.attempt_count, task.output) == (2, "sent")
    assert await pool.fetchval("select count(*) from effects") == 1


async def test_a_frozen_runner_writes_nothing_after_the_takeover(
    door: Any, spawn: Spawn, pool: Pool, start: Any
) -> None:
    await start(slots=0)
    frozen = spawn(slots=1)
    created = await door.create("1: sleep 1.5\nact letter\nanswer sent")
    await until_true(pool, RUNS, created.id)
    frozen.send_signal(signal.SIGSTOP)
    spawn(slots=1)
    task = await door.until(created.id, "completed")

    frozen.send_signal(signal.SIGCONT)
    # The thawed runner takes tasks again, so that it had the time to write what it was not allowed to.
    owner = await pool.fetchval("select owner from runners order by since limit 1 offset 1")
    for _ in range(20):
        await door.create("sleep 0.1")
    await until_true(pool, "exists (select 1 from tasks where state = 'running' and owner = $1)", owner)

    assert task.attempt_count == 2
    assert await door.get(created.id) == task
    effects = await pool.fetch("select attempt from effects where task_id = $1", created.id)
    assert [row["attempt"] for row in effects] == [2]


async def test_sigterm_drains_what_ends_soon_puts_back_what_had_not_acted_and_leaves_what_does_not_end(
    door: Any, spawn: Spawn, pool: Pool, start: Any
) -> None:
    await start(slots=0)
    process = spawn(str(uuid4()))
    short = await door.create("sleep 0.3\nanswer short")
    long = await door.create("1: sleep 60\nanswer long")
    deaf = await door.create("deaf 60")
    for task in (short, long, deaf):
        await until_true(pool, f"{RUNS} or (select state = 'completed' from tasks where id = $1)", task.id)

    process.send_signal(signal.SIGTERM)
    waiting = await door.create("answer later")
    ended = await door.until(short.id, "completed")
    back = await door.until(long.id, "queued")
    await until_true(pool, "(select interrupted_at is not null from tasks where id = $1)", deaf.id)

    assert ended.output == "short"
    assert (back.attempt_count, back.last_error_class, back.max_attempts) == (1, "restart", 4)
    assert (await door.get(waiting.id)).state == "queued"
    assert (await door.get(deaf.id)).state == "running"


async def kill_at_random(
    door: Any, spawn: Spawn, pool: Pool, *, rounds: int, tasks: int, seed: int
) -> tuple[list[str], float]:
    """Kill both runner processes at random moments while tasks with effects run; returns tasks and the longest wait."""
    randomly = random.Random(seed)
    created: list[str] = []
    for _ in range(rounds):
        processes = [spawn(slots=3) for _ in range(2)]
        for number in range(tasks):
            prompt = "\n".join(("sleep 0.02", "act one", "sleep 0.05", "act two", f"answer {number}"))
            created.append((await door.create(prompt, workspace_id="north", max_attempts=8)).id)
        began = "exists (select 1 from tasks where id = any($1) and started_attempt > 0)"
        await until_true(pool, began, created[-tasks:], timeout_s=60)
        for process in processes:
            await asyncio.sleep(randomly.uniform(0, 0.4))
            process.kill()
    killed_at = time.monotonic()
    spawn(slots=8)
    open_ = "(select count(*) from tasks where state in ('queued', 'running', 'failed'))"
    while await pool.fetchval(f"select {open_}"):
        assert time.monotonic() - killed_at < 60 + rounds * tasks, await pool.fetch("select * from tasks")
        await pool.execute("update tasks set run_at = now() where state = 'queued' and run_at > now()")
        await asyncio.sleep(0.05)
    return created, time.monotonic() - killed_at


async def balance(pool: Pool, created: list[str]) -> None:
    """Every task completed, every effect there, none of them twice."""
    states = await pool.fetch("select state, count(*) as n from tasks where remediates is null group by state")
    assert [(row["state"], row["n"]) for row in states] == [("completed", len(created))]
    doubled = await pool.fetch("select task_id, name from effects group by task_id, name having count(*) <> 1")
    assert doubled == []
    assert await pool.fetchval("select count(*) from effects") == 2 * len(created)
    starts = await pool.fetchval("select count(*) from outbox where subject like '%tasks-started%'")
    stops = await pool.fetchval("select count(*) from outbox where subject like '%tasks-stopped%'")
    assert starts == stops


async def test_runners_killed_at_random_leave_no_task_stuck_and_double_no_effect(
    door: Any, spawn: Spawn, pool: Pool, start: Any
) -> None:
    await start(slots=0)

    created, _ = await kill_at_random(door, spawn, pool, rounds=2, tasks=8, seed=7)

    await balance(pool, created)


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_two_hundred_kills_leave_no_task_stuck_and_double_no_effect(
    door: Any, spawn: Spawn, pool: Pool, start: Any
) -> None:
    await start(slots=0)

    created, _ = await kill_at_random(door, spawn, pool, rounds=100, tasks=4, seed=11)

    await balance(pool, created)
