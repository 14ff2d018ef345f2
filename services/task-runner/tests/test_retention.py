"""What ended well long ago goes, in batches and with a word; what needs a person stays for ever."""

from __future__ import annotations

from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_task_runner.tasks.retention import DELETE_OLD, Retention

from .test_handlers import put

STATES = ("queued", "running", "completed", "failed", "cancelled", "dead-letter")
DAYS = 30


async def ended(pool: Pool, state: str, days: float, **more: Any) -> str:
    task_id = await put(pool, state, **more)
    sql = "update tasks set created_at = now() - $2 * interval '1 day', ended_at = now() - $2 * interval '1 day'"
    await pool.execute(f"{sql} where id = $1", task_id, days)
    await pool.execute(
        "insert into task_activity (task_id, seq, revision, attempt, body, size) values ($1, 1, 1, 1, '{}', 2)", task_id
    )
    return task_id


async def left(pool: Pool) -> set[str]:
    return {row[0] for row in await pool.fetch("select id from tasks")}


async def test_what_ended_well_long_ago_goes_with_its_transcript_and_followers_are_told(
    start: Any, door: Any, pool: Pool
) -> None:
    runner = await start(slots=0)
    old = [await ended(pool, state, DAYS + 0.1) for state in ("completed", "cancelled") * 4]
    kept = {await ended(pool, state, DAYS - 0.1) for state in STATES}
    kept |= {await ended(pool, state, 3_000) for state in STATES if state not in {"completed", "cancelled"}}

    gone = await Retention(runner.pool, runner.deps.outbox, DAYS, at_once=3).prune()

    assert gone == len(old)
    assert await left(pool) == kept
    assert await pool.fetchval("select count(*) from task_activity") == len(kept)
    assert [(await door.until_told(task_id, 1))[0][0] for task_id in old] == ["deleted"] * len(old)


async def test_what_repaired_a_task_stays_while_that_one_waits_for_a_person(start: Any, pool: Pool) -> None:
    runner = await start(slots=0)
    buried = await ended(pool, "dead-letter", 3_000)
    done = await ended(pool, "completed", 1)
    stays = await ended(pool, "completed", 3_000, remediates=buried)
    for parent in (done, "gone long since"):
        await ended(pool, "completed", 3_000, remediates=parent)

    await Retention(runner.pool, runner.deps.outbox, DAYS).prune()

    assert await left(pool) == {buried, done, stays}


async def test_nothing_goes_where_everything_is_kept(start: Any, pool: Pool) -> None:
    runner = await start(slots=0)
    task_id = await ended(pool, "completed", 3_000)

    assert await Retention(runner.pool, runner.deps.outbox, 0).prune() == 0
    assert await left(pool) == {task_id}


@pytest.mark.parametrize("days", [DAYS, 3_000])
async def test_what_model_calls_cost_is_kept_as_long(start: Any, pool: Pool, days: int) -> None:
    runner = await start(slots=0)
    await pool.execute(
        "insert into model_usage (id, agent_id, route_model, source, input_tokens, cached_tokens, output_tokens,"
        " reasoning_tokens, estimated, queue_ms, duration_ms, retries, created_at)"
        " select 'u' || n, 'a', 'm', 's', 1, 0, 1, 0, false, 0, 1, 0, now() - n * interval '20 days'"
        " from generate_series(0, 4) n"
    )

    await Retention(runner.pool, runner.deps.outbox, days).prune()

    assert await pool.fetchval("select count(*) from model_usage") == (2 if days == DAYS else 5)


async def test_the_oldest_are_found_by_index_however_many_there_are(pool: Pool) -> None:
    await pool.execute(
        "insert into tasks (id, state, source, workspace_id, title, prompt, max_attempts, ended_at)"
        " select 't' || n, 'completed', 'user', 'w', '', 'p', 3, now() - make_interval(mins => n)"
        " from generate_series(1, 20000) n"
    )
    await pool.execute("analyze tasks")

    async with pool.acquire() as conn, conn.transaction():
        plan = "\n".join(
            row[0]
            for row in await conn.fetch(
                f"explain {DELETE_OLD.sql.replace('$1', chr(39) + '13 days' + chr(39)).replace('$2', '50')}"
            )
        )

    assert "tasks_over" in plan
    assert "Seq Scan" not in plan
