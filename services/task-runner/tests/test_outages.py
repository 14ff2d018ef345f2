"""PostgreSQL and NATS stopped under running tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from popagent_bus import Bus
from popagent_bus.streams import declare
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Pool, open_pool
from popagent_kit.errors import UnavailableError
from popagent_proto import matrix
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.suite_bus import PASSWORDS
from popagent_testing.task_running import EFFECTS, Runner, start_runner

INSERT = """
insert into tasks (id, source, workspace_id, title, prompt, max_attempts)
values ($1, 'user', 'home', '', $2, 3)
"""
Begin = Callable[..., Awaitable[Runner]]


@pytest.fixture
async def own_dsn(private_postgres: PostgresServer) -> str:
    """A migrated database of a server that the test may stop."""
    await bootstrap(private_postgres.dsn("popagent"), ["task-runner"], {"task-runner": "secret"})
    dsn = role_dsn(private_postgres.dsn("popagent"), "task-runner", "secret")
    await migrate(dsn, "task-runner")
    pool = await open_pool(dsn, application_name="test", max_size=1)
    await pool.execute(EFFECTS)
    await pool.close()
    return dsn


@pytest.fixture
async def begin(own_dsn: str, suite_nats: NatsServer) -> AsyncIterator[Begin]:
    started: list[Runner] = []

    async def beginning(**options: Any) -> Runner:
        started.append(await start_runner(own_dsn, suite_nats.url, **options))
        return started[-1]

    yield beginning
    for runner in started:
        await runner.stop()


async def until_state(pool: Pool, task_id: str, state: str, timeout_s: float = 20) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                if await pool.fetchval("select state from tasks where id = $1", task_id) == state:
                    return
            except UnavailableError:
                pass  # that is what is tested
            await asyncio.sleep(0.02)


async def test_a_database_that_is_away_for_less_than_the_lease_costs_the_task_nothing(
    begin: Begin, private_postgres: PostgresServer
) -> None:
    runner = await begin(lease_s=20.0)
    await runner.pool.execute(INSERT, "t", "say one two\nsleep 1\nsay three\nanswer done")
    await until_state(runner.pool, "t", "running")
    async with asyncio.timeout(10):
        while not runner.executor.runs:
            await asyncio.sleep(0.01)

    await asyncio.to_thread(private_postgres.stop, True)
    async with asyncio.timeout(10):
        while runner.executor.running:
            await asyncio.sleep(0.02)
    await asyncio.to_thread(private_postgres.start)

    await until_state(runner.pool, "t", "completed")
    assert await runner.pool.fetchval("select attempt from tasks") == 1
    said = "select string_agg(body->>'text', '' order by seq) from task_activity"
    assert await runner.pool.fetchval(said) == "one two three "


async def test_a_database_that_is_away_for_longer_than_the_lease_ends_the_attempt_before_another_one_begins(
    begin: Begin, private_postgres: PostgresServer
) -> None:
    runner = await begin(lease_s=1.2)
    await runner.pool.execute(INSERT, "t", "1: sleep 60\nact letter\nanswer done")
    await until_state(runner.pool, "t", "running")
    async with asyncio.timeout(10):
        while not runner.executor.runs:
            await asyncio.sleep(0.01)

    await asyncio.to_thread(private_postgres.stop, True)
    stopped_at = time.monotonic()
    async with asyncio.timeout(10):
        while runner.executor.running:
            await asyncio.sleep(0.01)
    took_s = time.monotonic() - stopped_at
    reason = runner.executor.runs[0].stop.reason
    await asyncio.to_thread(private_postgres.start)
    await until_state(runner.pool, "t", "queued")
    await runner.pool.execute("update tasks set run_at = now()")
    await until_state(runner.pool, "t", "completed")

    assert reason == "lost"
    assert took_s < 2.5  # it was told when the lease was nearly over; on a busy machine it hears it later
    assert (runner.executor.most, len(runner.executor.runs)) == (1, 2)
    assert await runner.pool.fetchval("select count(*) from effects") == 1


async def test_without_nats_tasks_are_found_and_run_and_their_events_come_when_it_is_back(
    private_postgres: PostgresServer, own_dsn: str, make_nats: Callable[[str], NatsServer]
) -> None:
    nats = make_nats(matrix.nats_authorization(PASSWORDS))
    await declare(nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    runner = await start_runner(own_dsn, nats.url)
    await asyncio.to_thread(nats.kill)

    await runner.pool.execute(INSERT, "t", "answer done")
    await until_state(runner.pool, "t", "completed", 10)
    waiting = await runner.pool.fetchval("select count(*) from outbox where sent_at is null")
    await asyncio.to_thread(nats.start)
    async with asyncio.timeout(20):
        while await runner.pool.fetchval("select count(*) from outbox where sent_at is null"):
            await asyncio.sleep(0.05)
    door = matrix.BY_NAME["gateway"]
    bus = await Bus.connect(nats.url, service="gateway", user=door.role, password=PASSWORDS["gateway"])
    _, last = await bus.stream_state(matrix.EVENTS)
    await bus.drain()
    await runner.stop()

    assert waiting == 2
    assert last == 2
