"""What becomes of an attempt whose lease ran out: by a restart, by the end of its runner alone, by age."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from popagent_db.pool import Pool
from popagent_proto.task_runner.tasks import TaskSummary

LOSE = """
update tasks
set state = 'running', attempt = $2, started_attempt = $3, turn_id = 'turn', trace_id = 'trace', owner = $4,
    boot_id = $5, started_at = now() - make_interval(secs => $6), lease_until = now() - interval '1 second',
    stop_requested = $7, run_at = now()
where id = $1
"""
BEGIN = "insert into runners (owner, boot_id, since) values ($1, $2, now() - make_interval(secs => $3))"


async def lose(pool: Pool, task: TaskSummary, **more: Any) -> None:
    """Make the task one whose runner is gone since a second."""
    given: dict[str, Any] = {"attempt": 1, "owner": uuid4(), "boot_id": uuid4(), "ran_s": 5.0, "stop": False} | more
    given.setdefault("started", given["attempt"])
    names = ("attempt", "started", "owner", "boot_id", "ran_s", "stop")
    await pool.execute(LOSE, task.id, *(given[name] for name in names))


async def begin(pool: Pool, boot_id: UUID, ago_s: float) -> None:
    """Note a runner of a suite that began so long ago."""
    await pool.execute(BEGIN, uuid4(), boot_id, ago_s)


async def made(door: Any, pool: Pool, *, acts: bool = False, **fields: Any) -> TaskSummary:
    created: TaskSummary = await door.create("act letter\nanswer sent", **fields)
    if acts:
        await pool.execute(
            "insert into task_intents (task_id, attempt, step, call_id, tool, arguments)"
            " values ($1, 1, 1, 'call-1', 'act', 'letter')",
            created.id,
        )
    return created


async def recovered(start: Any, door: Any, task: TaskSummary) -> Any:
    """Start a runner that sweeps and runs nothing, and return the task when it is not running any more."""
    await start(slots=0)
    return await door.until(task.id, "queued", "failed", "cancelled", "dead-letter")


async def test_a_restart_of_the_whole_suite_costs_no_attempt(start: Any, door: Any, pool: Pool) -> None:
    await start(works=False)
    created = await made(door, pool, max_attempts=1)
    await lose(pool, created)
    await begin(pool, uuid4(), 2.0)

    task = await recovered(start, door, created)
    (_, stopped) = (await door.until_told(created.id, 2))[-1]

    assert (task.state, task.last_error_class, task.attempt_count, task.max_attempts) == ("queued", "restart", 1, 2)
    assert (stopped["outcome"], stopped["errorClass"], stopped["turnId"]) == ("failed", "restart", "turn")


@pytest.mark.parametrize("which", ["its own suite", "an older suite", "no suite", "one that was no suite itself"])
async def test_a_runner_that_is_gone_while_no_suite_began_costs_an_attempt(
    start: Any, door: Any, pool: Pool, which: str
) -> None:
    await start(works=False)
    created = await made(door, pool, max_attempts=3)
    boot, owner = uuid4(), uuid4()
    await lose(pool, created, boot_id=owner if which == "one that was no suite itself" else boot, owner=owner)
    if which == "its own suite":
        await begin(pool, boot, 1.0)
    elif which == "an older suite":
        await begin(pool, uuid4(), 60.0)
    elif which == "one that was no suite itself":
        await begin(pool, uuid4(), 1.0)

    task = await recovered(start, door, created)

    assert (task.state, task.last_error_class, task.max_attempts) == ("queued", "runner-lost", 3)


@pytest.mark.parametrize(
    ("fields", "lost", "state", "cause"),
    [
        ({}, {"attempt": 3}, "dead-letter", "runner-lost"),
        ({"acts": True}, {}, "failed", "runner-lost"),
        ({"acts": True, "source": "self-update"}, {}, "queued", "runner-lost"),
        ({"acts": True, "workflow": True}, {}, "queued", "runner-lost"),
        ({"acts": True}, {"stop": True}, "cancelled", "cancelled"),
        ({}, {"stop": True, "ran_s": 9e5}, "cancelled", "cancelled"),
        ({}, {"ran_s": 659.0}, "queued", "runner-lost"),
        ({}, {"ran_s": 665.0}, "failed", "stale"),
        ({"source": "self-update"}, {"ran_s": 665.0}, "failed", "stale"),
        ({}, {"attempt": 3, "ran_s": 665.0}, "dead-letter", "stale"),
        # Its runner was gone before it told of the attempt: what is known of the start is an earlier one's.
        ({}, {"attempt": 2, "started": 1, "ran_s": 9e5}, "queued", "runner-lost"),
    ],
)
async def test_what_is_lost_ends_as_its_age_its_attempts_and_its_effects_say(
    start: Any, door: Any, pool: Pool, fields: dict[str, Any], lost: dict[str, Any], state: str, cause: str
) -> None:
    await start(works=False)
    created = await made(door, pool, **fields)
    await lose(pool, created, **lost)

    task = await recovered(start, door, created)
    told = await door.until_told(created.id, 2)

    assert (task.state, task.last_error_class) == (state, cause)
    assert (task.source, task.workspace_id, task.prompt) == (created.source, "home", "act letter\nanswer sent")
    assert told[-1][0] == ("changed" if "started" in lost else "stopped")


async def test_a_runner_claims_nothing_before_it_knows_its_limits(start: Any, door: Any) -> None:
    runner = await start(slots=0)
    created = await door.create()

    runner.limits.append(type(runner.limits[0])(2, 60.0))

    assert (await door.until(created.id, "completed")).attempt_count == 1
