"""Forward-only migrations: `_kernel` into every service's schema, then the service's own, each file once."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg

from popagent_db.pool import Connection, Pool, connect, session_settings, translated
from popagent_db.query import Query
from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import clone_root
from popagent_proto.matrix import BY_NAME

log = logging.getLogger(__name__)

KERNEL: Final = "_kernel"
FILE_NAME: Final = re.compile(r"\A(\d{4})_[a-z0-9_]+\.sql\Z")
# Any constant: the first key of every advisory lock of a migrator; the second is the schema.
LOCK_CLASS: Final = 0x706F7001
# Building an index, or waiting for another migrator, may last longer than any limit of a request.
NO_LIMITS: Final = {"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0"}


class MigrationError(ConfigurationError):
    """The migration files and the database do not fit together; the message names the file."""


@dataclass(frozen=True)
class Migration:
    """One file. `part` is `_kernel` or the service; numbers count from 1 within a part."""

    part: str
    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Return the digest that is recorded when the file is applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True)
class Applied:
    """A row of `schema_migrations`."""

    part: str
    number: int
    name: str
    sha256: str


CREATE_TABLE: Final = Query(
    None,
    """
    create table if not exists schema_migrations (
        part text not null,
        number integer not null,
        name text not null,
        sha256 text not null,
        applied_at timestamptz not null default clock_timestamp(),
        primary key (part, number)
    )
    """,
)
LIST_APPLIED: Final = Query(Applied, "select part, number, name, sha256 from schema_migrations order by part, number")
RECORD: Final = Query(None, "insert into schema_migrations (part, number, name, sha256) values ($1, $2, $3, $4)")
TABLE_EXISTS: Final = Query(bool, "select to_regclass('schema_migrations') is not null")
CURRENT_SCHEMA: Final = Query(str, "select coalesce(current_schema(), '')")
LOCK: Final = Query(str, "select pg_advisory_lock($1, hashtext($2))::text")


def migrations_folder() -> Path:
    """Return `migrations/` of the clone, else the copy that the wheel carries."""
    root = clone_root()
    return root / "migrations" if root is not None else Path(__file__).parent / "_migrations"


def migrations_of(service: str, folder: Path | None = None) -> list[Migration]:
    """Return the kernel's files, then the service's, in the order they are applied.

    Raises:
        MigrationError: A name is wrong, a number is missing or given twice, or there is no kernel.
    """
    base = folder or migrations_folder()
    kernel = list(_part(base / KERNEL, KERNEL))
    if not kernel:
        raise MigrationError(f"no migrations in {base / KERNEL}")
    return [*kernel, *_part(base / service, service)]


def _part(folder: Path, part: str) -> Iterator[Migration]:
    for expected, file in enumerate(sorted(folder.glob("*.sql")), start=1):
        match = FILE_NAME.match(file.name)
        if match is None:
            raise MigrationError(f"{part}/{file.name}: expected NNNN_name.sql in lower case")
        number = int(match[1])
        if number < expected:
            raise MigrationError(f"{part}/{file.name}: number {number:04} is given twice")
        if number > expected:
            raise MigrationError(f"{part}/{file.name}: number {expected:04} is missing before it")
        yield Migration(part, number, file.name, file.read_text(encoding="utf-8"))


def pending(files: Sequence[Migration], applied: Sequence[Applied]) -> list[Migration]:
    """Return the files that are not applied yet.

    Numbers above the newest file are left alone: newer code has been here, and it expands before it contracts.

    Raises:
        MigrationError: An applied file was changed, or one below the newest was skipped.
    """
    done = {(row.part, row.number): row for row in applied}
    newest: dict[str, int] = {}
    for row in applied:
        newest[row.part] = max(newest.get(row.part, 0), row.number)
    todo = []
    for file in files:
        row_done = done.get((file.part, file.number))
        if row_done is None:
            if file.number < newest.get(file.part, 0):
                raise MigrationError(f"{file.part}/{file.name} was never applied, and a later one was")
            todo.append(file)
        elif row_done.sha256 != file.sha256:
            raise MigrationError(f"{file.part}/{file.name} was changed after it was applied; write a new one instead")
    return todo


async def migrate(dsn: str, service: str, folder: Path | None = None) -> list[str]:
    """Apply what is pending as the service's role, and return the names; each file is one transaction.

    A second migrator waits for the first and then finds nothing to do. After a failure the files before it stay.

    Raises:
        MigrationError: See `migrations_of` and `pending`; or the role's search_path does not begin with its schema.
        UnavailableError: PostgreSQL does not answer.
    """
    files = migrations_of(service, folder)
    connection = await connect(dsn, settings=session_settings(f"popagent-migrate-{service}", 0) | NO_LIMITS)
    try:
        async with translated(connection):
            return await _migrate_on(connection, BY_NAME[service].schema, files)
    finally:
        await connection.close(timeout=5)


async def _migrate_on(connection: Connection, schema: str, files: Sequence[Migration]) -> list[str]:
    if (found := await CURRENT_SCHEMA.value(connection)) != schema:
        raise MigrationError(f"this role works in schema {found!r}, not {schema!r}; run `popagent bootstrap` first")
    await LOCK.value(connection, LOCK_CLASS, schema)  # held until the connection closes
    await CREATE_TABLE.run(connection)
    todo = pending(files, await LIST_APPLIED.all(connection))
    for file in todo:
        await _apply(connection, file)
    return [f"{file.part}/{file.name}" for file in todo]


async def _apply(connection: Connection, file: Migration) -> None:
    try:
        async with connection.transaction():
            await connection.execute(file.sql)
            await RECORD.run(connection, file.part, file.number, file.name, file.sha256)
    except (asyncpg.SyntaxOrAccessError, asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
        raise MigrationError(f"{file.part}/{file.name}: {error}") from error
    log.info("migration applied", extra={"migration": f"{file.part}/{file.name}"})


async def require_version(pool: Pool, service: str, folder: Path | None = None) -> None:
    """Refuse to go on unless every file this code knows is applied unchanged.

    A newer database is accepted, so that an old instance can restart in the middle of a rolling update.

    Raises:
        MigrationError: The message says which file is missing or changed.
    """
    files = migrations_of(service, folder)
    async with pool.acquire() as connection:
        exists = await TABLE_EXISTS.value(connection)
        applied = await LIST_APPLIED.all(connection) if exists else []
    if todo := pending(files, applied):
        first = f"{todo[0].part}/{todo[0].name}"
        raise MigrationError(f"{service}: {len(todo)} migrations are missing, first {first}; run `popagent migrate`")
