from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import KERNEL
from popagent_db.pool import Pool, open_pool
from popagent_proto.matrix import SERVICES
from popagent_testing.plugin import Prepare, role_password

PASSWORDS = {row.name: role_password(row.name) for row in SERVICES}


async def bootstrap_all(dsn: str, _: str = "") -> None:
    await bootstrap(dsn, list(PASSWORDS), PASSWORDS)


@pytest.fixture
def bootstrapped(templates: Callable[[str, Prepare], str]) -> str:
    """An administrator's DSN of a database with every role and schema, and no table."""
    return templates("bootstrapped", bootstrap_all)


@pytest.fixture
def chat_dsn(bootstrapped: str) -> str:
    return role_dsn(bootstrapped, "chat", PASSWORDS["chat"])


@pytest.fixture
async def pool(chat_dsn: str) -> AsyncIterator[Pool]:
    opened = await open_pool(chat_dsn, application_name="test", max_size=4)
    yield opened
    await opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A migrations folder with one kernel file and two of chat."""
    write_migration(tmp_path, KERNEL, "0001_kernel.sql", "create table outbox (id text primary key)")
    write_migration(tmp_path, "chat", "0001_turns.sql", "create table turns (id text primary key)")
    write_migration(tmp_path, "chat", "0002_turn_state.sql", "alter table turns add column state text")
    return tmp_path


def write_migration(folder: Path, part: str, name: str, sql: str) -> Path:
    file = folder / part / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(sql)
    return file
