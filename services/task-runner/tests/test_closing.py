"""A workspace that is about to be deleted takes no new task, whoever comes at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_proto.task_runner.workspaces import CloseToTasks, OpenToTasks
from popagent_testing.suite_bus import ConnectAs

from .conftest import Door, Start

Refusal = Callable[[Awaitable[Any]], Awaitable[AppError]]
BLOCKED = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like $1
"""


@pytest.fixture
async def chat(start: Start, connect_as: ConnectAs) -> Door:
    """Asks a runner that carries nothing out as chat does."""
    runner = await start(works=False)
    return Door(await connect_as("chat"), runner.pool)


def close(closed_by: str = "me") -> CloseToTasks:
    return CloseToTasks(workspace_id="north", closed_by=closed_by)


async def blocked(pool: Pool, what: str) -> None:
    async with asyncio.timeout(5):
        while not await pool.fetchval(BLOCKED, f"%{what}%"):
            await asyncio.sleep(0.01)


async def test_a_closed_workspace_takes_no_task_until_everybody_who_closed_it_has_opened_it(
    chat: Door, door: Door, refusal: Refusal
) -> None:
    kept = await door.create(workspace_id="north", command_id="kept")

    counts = [(await chat.ask(close(name))).count for name in ("me", "you", "me")]
    refused = [await refusal(door.create(workspace_id="north"))]
    again = await door.create(workspace_id="north", command_id="kept")
    elsewhere = await door.create(workspace_id="south")
    await chat.ask(OpenToTasks(workspace_id="north", closed_by="me"))
    refused.append(await refusal(door.create(workspace_id="north")))
    await chat.ask(OpenToTasks(workspace_id="north", closed_by="you"))
    opened = await door.create(workspace_id="north")

    assert counts == [1, 1, 1]
    assert [(each.http_status, each.code, each.retryable) for each in refused] == [(409, "workspace_closing", True)] * 2
    assert (again.id, elsewhere.workspace_id, opened.workspace_id) == (kept.id, "south", "north")


async def test_a_closing_that_nobody_ended_is_over_after_its_time(chat: Door, door: Door, pool: Pool) -> None:
    await chat.ask(close())
    await pool.execute("update closed_workspaces set until = clock_timestamp()")

    assert (await door.create(workspace_id="north")).workspace_id == "north"


async def test_a_task_that_is_being_stored_is_waited_for_and_counted(chat: Door, pool: Pool) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute(
            "insert into tasks (id, source, workspace_id, title, prompt, max_attempts)"
            " values ('t', 'user', 'north', '', 'p', 3)"
        )
        closing = asyncio.create_task(chat.ask(close()))
        await blocked(pool, "lock table tasks")
    closed = await closing

    assert closed.count == 1


async def test_a_task_that_comes_while_it_is_closed_sees_it(
    chat: Door, door: Door, pool: Pool, refusal: Refusal
) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("lock table tasks in share mode")
        creating = asyncio.create_task(refusal(door.create(workspace_id="north")))
        await blocked(pool, "insert into tasks")
        await conn.execute("insert into closed_workspaces values ('north', 'me', now() + interval '1 min')")
    refused = await creating

    assert refused.code == "workspace_closing"
    assert await pool.fetchval("select count(*) from tasks") == 0


async def test_who_stores_for_long_keeps_nobody_waiting(chat: Door, pool: Pool, refusal: Refusal) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("lock table tasks in row exclusive mode")
        refused = await refusal(chat.ask(close()))

    assert (refused.http_status, refused.message) == (503, "Too much is being stored at this moment.")
    assert (await chat.ask(close())).count == 0
