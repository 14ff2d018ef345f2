"""Everything that a suite has written down: rows of both databases, and the files of its home."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg

from tests.suite import POSTGRES, POSTGRES_TRACES, Suite

# What an operator or popagent itself keeps there, to be read by nobody else.
KEPT: Final = frozenset({"credentials", "sandbox"})


async def all_rows(suite: Suite) -> AsyncIterator[str]:
    """Yield every row of both servers as text."""
    for program, credential in ((POSTGRES, "postgres-application"), (POSTGRES_TRACES, "postgres-observability")):
        port = suite.program(program).port
        password = (suite.home / "credentials" / credential).read_text().strip()
        async with connected(port, password, "postgres") as conn:
            names = await conn.fetch("select datname from pg_database where not datistemplate")
        for name in names:
            async with connected(port, password, name[0]) as conn:
                tables = await conn.fetch(
                    "select format('%I.%I', schemaname, tablename) from pg_tables "
                    "where schemaname not in ('pg_catalog', 'information_schema')"
                )
                for table in tables:
                    for row in await conn.fetch(f"select row::text from {table[0]} row"):
                        yield row[0]


def all_files(suite: Suite) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the home: logs, the streams of NATS, what the databases have written, the state of `up`."""
    yield suite.log_file.name, suite.log_file.read_bytes()
    for path in _files(suite.home, KEPT):
        yield str(path.relative_to(suite.home)), path.read_bytes()


def _files(folder: Path, but: Collection[str] = ()) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from () if path.name in but else _files(path)
        elif path.is_file():
            yield path


@asynccontextmanager
async def connected(
    port: int | None, password: str, database: str
) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """Connect as the owner of a cluster."""
    conn = await asyncpg.connect(host="127.0.0.1", port=port, user="popagent", password=password, database=database)
    try:
        yield conn
    finally:
        await conn.close()
