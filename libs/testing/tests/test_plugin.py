"""The fixtures themselves: each gives a real server, and no test reaches further than this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import asyncpg
import nats
import pytest

from popagent_testing.servers import NatsServer, PostgresServer


async def test_every_database_is_fresh(make_database: Callable[..., str]) -> None:
    first = await asyncpg.connect(make_database())
    second = await asyncpg.connect(make_database())

    await first.execute("create table mine (id int)")

    assert await second.fetchval("select to_regclass('mine')") is None
    await first.close()
    await second.close()


async def test_a_service_database_is_migrated_and_belongs_to_its_role(service_database: Callable[[str], str]) -> None:
    connection = await asyncpg.connect(service_database("gateway"))

    assert await connection.fetchval("select current_user::text") == "popagent_gateway"
    assert await connection.fetchval("select count(*) from schema_migrations") > 0
    assert await connection.fetchval("select count(*) from outbox") == 0
    await connection.close()


async def test_a_killed_postgresql_keeps_what_was_committed(private_postgres: PostgresServer) -> None:
    before = await asyncpg.connect(private_postgres.dsn())
    await before.execute("create table kept as select 42 as answer")
    before.terminate()

    private_postgres.kill()
    private_postgres.start()

    after = await asyncpg.connect(private_postgres.dsn())
    assert await after.fetchval("select answer from kept") == 42
    await after.close()


async def test_a_killed_nats_keeps_its_streams_and_a_wiped_one_forgets_them(private_nats: NatsServer) -> None:
    client = await nats.connect(private_nats.url)
    await client.jetstream().add_stream(name="KEPT", subjects=["kept.>"])
    await client.close()

    private_nats.kill()
    private_nats.start()
    kept = await _streams(private_nats.url)
    private_nats.wipe()

    assert kept == 1
    assert await _streams(private_nats.url) == 0


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
def test_no_test_reaches_beyond_this_machine() -> None:
    with pytest.raises(RuntimeError, match=r"192\.0\.2\.1"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


async def _streams(url: str) -> int:
    client = await nats.connect(url)
    try:
        return (await client.jetstream().account_info()).streams
    finally:
        await client.close()
