from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import asyncpg
import pytest

from popagent_db.pool import Pool, open_pool
from popagent_kit.errors import ConfigurationError, UnavailableError
from popagent_testing.plugin import PostgresAddress, execute
from popagent_testing.servers import PostgresServer


async def test_an_immediate_stop_is_unavailable_at_once_and_heals_by_itself(private_postgres: PostgresServer) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", min_size=3, max_size=3)
    async with pool.acquire() as one, pool.acquire() as two:
        assert await one.fetchval("select 1") + await two.fetchval("select 1") == 2

    private_postgres.stop(immediate=True)
    started = time.monotonic()
    refusals = [await outcome(pool.fetchval("select 1")) for _ in range(6)]
    took_s = time.monotonic() - started
    private_postgres.start()
    answers = await asyncio.gather(*(pool.fetchval("select 1") for _ in range(6)))

    assert all(isinstance(refusal, UnavailableError) and refusal.retry_after_s for refusal in refusals)
    assert took_s < 2
    assert answers == [1] * 6
    await pool.close()


async def outcome(work: object) -> object:
    try:
        return await work  # type: ignore[misc]
    except Exception as error:
        return error


async def test_a_server_lost_in_a_transaction_is_unavailable_and_stored_nothing(
    private_postgres: PostgresServer,
) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=1)
    await pool.execute("create table facts (id integer)")

    async def write() -> None:
        async with pool.transaction() as conn:
            await conn.execute("insert into facts values (1)")
            private_postgres.restart(immediate=True)
            await conn.execute("insert into facts values (2)")

    with pytest.raises(UnavailableError):
        await write()

    assert await pool.fetchval("select count(*) from facts") == 0
    await pool.close()


async def test_a_statement_that_takes_too_long_is_unavailable_and_gives_the_connection_back(
    private_postgres: PostgresServer,
) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=1, statement_timeout_s=0.1)

    with pytest.raises(UnavailableError, match="statement timeout"):
        await pool.fetchval("select pg_sleep(5)")

    assert await pool.fetchval("select 1") == 1
    await pool.close()


async def test_a_frozen_server_does_not_hold_a_caller(private_postgres: PostgresServer) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=1)
    backend = await pool.fetchval("select pg_backend_pid()")

    os.kill(backend, signal.SIGSTOP)
    try:
        with pytest.raises(UnavailableError):
            await pool.check(timeout_s=0.3)
    finally:
        os.kill(backend, signal.SIGCONT)

    assert await pool.fetchval("select 1") == 1
    await pool.close()


async def test_a_full_disk_is_said_as_one(pool: Pool) -> None:
    raised = (
        "do $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$"
    )

    with pytest.raises(UnavailableError, match=r"disk .* is full. Nothing was stored"):
        await pool.execute(raised)


async def test_no_free_connection_is_unavailable_after_the_given_time(private_postgres: PostgresServer) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=1)

    async with pool.acquire():
        with pytest.raises(UnavailableError, match=r"free within 0\.05 s"):
            async with pool.acquire(timeout_s=0.05):
                pass

    await pool.close()


async def test_a_wrong_password_or_database_is_a_matter_of_configuration(private_postgres: PostgresServer) -> None:
    address = private_postgres.dsn().rpartition("@")[2]

    with pytest.raises(ConfigurationError):
        await open_pool(private_postgres.dsn("nowhere"), application_name="test")
    with pytest.raises(ConfigurationError):
        await open_pool(f"postgresql://popagent:wrong@{address}", application_name="test")


async def test_a_database_that_is_replaced_under_the_pool_is_unavailable_until_it_is_there(
    make_database: Callable[..., str], postgres: PostgresAddress
) -> None:
    dsn = make_database()
    name = urlsplit(dsn).path.lstrip("/")
    pool = await open_pool(dsn, application_name="test")

    await execute(postgres.dsn(), f'drop database "{name}" with (force)')
    refusals = [await outcome(pool.fetchval("select 1")) for _ in range(3)]
    await execute(postgres.dsn(), f'create database "{name}" allow_connections false')
    closed = await outcome(pool.fetchval("select 1"))
    await execute(postgres.dsn(), f'alter database "{name}" allow_connections true')

    assert [type(refusal) for refusal in (*refusals, closed)] == [UnavailableError] * 4
    assert await pool.fetchval("select 1") == 1
    await pool.close()


async def test_a_transaction_left_open_by_its_holder_is_rolled_back(private_postgres: PostgresServer) -> None:
    pool = await open_pool(private_postgres.dsn(), application_name="test", max_size=1)
    await pool.execute("create table facts (id integer)")

    async def write() -> None:
        async with pool.transaction() as conn:
            await conn.execute("insert into facts values (1)")
            await conn.execute("select * from nowhere")

    with pytest.raises(asyncpg.UndefinedTableError):
        await write()

    assert await pool.fetchval("select count(*) from facts") == 0
    assert await pool.fetchval("select current_setting('application_name')") == "test"
    await pool.close()
