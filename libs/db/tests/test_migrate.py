from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from popagent_db.migrate import (
    KERNEL,
    MigrationError,
    migrate,
    migrations_folder,
    migrations_of,
    require_version,
)
from popagent_db.pool import Pool
from popagent_kit.errors import UnavailableError
from popagent_proto.matrix import SERVICES
from popagent_testing.servers import PostgresServer


def write_migration(folder: Path, part: str, name: str, sql: str) -> Path:
    file = folder / part / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(sql)
    return file


async def applied(pool: Pool) -> list[str]:
    rows = await pool.fetch("select part || '/' || number as at from schema_migrations order by applied_at")
    return [row["at"] for row in rows]


async def test_kernel_comes_first_and_each_file_runs_once(chat_dsn: str, pool: Pool, folder: Path) -> None:
    first = await migrate(chat_dsn, "chat", folder)
    again = await migrate(chat_dsn, "chat", folder)

    assert first == ["_kernel/0001_kernel.sql", "chat/0001_turns.sql", "chat/0002_turn_state.sql"]
    assert again == []
    assert await applied(pool) == ["_kernel/1", "chat/1", "chat/2"]
    assert await pool.fetchval("select tableowner from pg_tables where tablename = 'turns'") == "popagent_chat"


async def test_two_migrators_at_once_share_the_work(chat_dsn: str, folder: Path) -> None:
    write_migration(folder, "chat", "0003_slow.sql", "select pg_sleep(0.3)")

    results = await asyncio.gather(*(migrate(chat_dsn, "chat", folder) for _ in range(4)))

    assert sorted(len(names) for names in results) == [0, 0, 0, 4]


async def test_a_failed_file_leaves_nothing_and_is_tried_again(chat_dsn: str, pool: Pool, folder: Path) -> None:
    bad = write_migration(folder, "chat", "0003_bad.sql", "create table half (id text); select nonsense;")

    with pytest.raises(MigrationError, match=r"chat/0003_bad\.sql"):
        await migrate(chat_dsn, "chat", folder)
    left = await pool.fetchval("select to_regclass('half')::text")
    bad.write_text("create table half (id text)")
    repaired = await migrate(chat_dsn, "chat", folder)

    assert left is None
    assert repaired == ["chat/0003_bad.sql"]


async def test_a_changed_file_is_named(chat_dsn: str, pool: Pool, folder: Path) -> None:
    await migrate(chat_dsn, "chat", folder)
    write_migration(folder, "chat", "0001_turns.sql", "create table turns (id text primary key, more text)")

    with pytest.raises(MigrationError, match=r"chat/0001_turns\.sql was changed"):
        await migrate(chat_dsn, "chat", folder)
    with pytest.raises(MigrationError, match=r"chat/0001_turns\.sql was changed"):
        await require_version(pool, "chat", folder)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("0004_gap.sql", "number 0003 is missing"),
        ("0002_again.sql", "number 0002 is given twice"),
        ("3_short.sql", "expected NNNN_name.sql"),
        ("0003_Upper.sql", "expected NNNN_name.sql"),
    ],
)
def test_a_gap_a_double_and_a_strange_name_are_refused(folder: Path, name: str, complaint: str) -> None:
    write_migration(folder, "chat", name, "select 1")

    with pytest.raises(MigrationError, match=complaint):
        migrations_of("chat", folder)


async def test_a_service_refuses_an_old_database_and_accepts_a_newer_one(
    chat_dsn: str, pool: Pool, folder: Path
) -> None:
    with pytest.raises(MigrationError, match=r"3 migrations are missing, first _kernel/0001_kernel\.sql"):
        await require_version(pool, "chat", folder)
    newer = write_migration(folder, "chat", "0003_newer.sql", "create table newer (id text)")
    await migrate(chat_dsn, "chat", folder)

    newer.unlink()

    await require_version(pool, "chat", folder)
    assert await migrate(chat_dsn, "chat", folder) == []


async def test_an_administrator_by_mistake_creates_nothing(bootstrapped: str, folder: Path) -> None:
    with pytest.raises(MigrationError, match="'public', not 'chat'"):
        await migrate(bootstrapped, "chat", folder)

    admin = await asyncpg.connect(bootstrapped)
    assert await admin.fetchval("select count(*) from pg_tables where schemaname = 'public'") == 0
    await admin.close()


async def test_concurrent_callers_share_one_initialisation_and_a_failure_is_retried(
    chat_dsn: str, pool: Pool, folder: Path
) -> None:
    bad = write_migration(folder, "chat", "0003_bad.sql", "select nonsense")

    failed = await asyncio.gather(*(migrate(chat_dsn, "chat", folder) for _ in range(3)), return_exceptions=True)
    bad.write_text("create table fine (id text)")
    done = await asyncio.gather(*(migrate(chat_dsn, "chat", folder) for _ in range(3)))

    assert [type(error) for error in failed] == [MigrationError] * 3
    assert sorted(done) == [[], [], ["chat/0003_bad.sql"]]
    assert len(await applied(pool)) == 4


async def test_a_lost_server_is_unavailable_and_not_a_broken_file(
    private_postgres: PostgresServer, folder: Path
) -> None:
    dsn = private_postgres.dsn()
    private_postgres.stop(immediate=True)

    with pytest.raises(UnavailableError):
        await migrate(dsn, "chat", folder)


def test_every_service_has_valid_migration_files() -> None:
    for row in SERVICES:
        assert migrations_of(row.name)[0].part == KERNEL
    assert migrations_folder().is_dir()
