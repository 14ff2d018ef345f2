"""The pool of connections; what PostgreSQL's absence raises becomes UnavailableError here and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, TypeAlias

import asyncpg
import orjson
from asyncpg.pool import PoolConnectionProxy

from popagent_kit.errors import ConfigurationError, UnavailableError

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"

CONNECT_TIMEOUT_S: Final = 5.0
ACQUIRE_TIMEOUT_S: Final = 5.0
RELEASE_TIMEOUT_S: Final = 1.0
STATEMENT_TIMEOUT_S: Final = 30.0
# The server gives up first and says why; the client's own limit is for a connection that answers no more at all.
COMMAND_MARGIN_S: Final = 3.0
RETRY_AFTER_S: Final = 1.0
# A person has to do something first.
DISK_RETRY_AFTER_S: Final = 30.0

# The server is gone, going, starting, full, out of disk, read-only, or took too long. Trying again later may work.
ABSENCE: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    ConnectionError,
    TimeoutError,
)
# Wrong address or credentials: waiting does not help.
REFUSAL: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidCatalogNameError,
)


@asynccontextmanager
async def translated(connection: Connection | None = None) -> AsyncIterator[None]:
    """Turn "PostgreSQL does not answer" into UnavailableError (503, Retry-After); other errors pass unchanged.

    A TimeoutError inside counts as the database's: wait for nothing else while a connection is held.
    """
    try:
        yield
    except Exception as error:
        if is_absence(error, connection):
            raise _unavailable(error) from error
        raise


def is_absence(error: BaseException, connection: Connection | None) -> bool:
    """Tell whether `error`, raised while `connection` was used, means that PostgreSQL does not answer."""
    if isinstance(error, asyncpg.InterfaceError):
        return connection is None or _is_lost(connection)
    return isinstance(error, ABSENCE)


def _is_lost(connection: Connection) -> bool:
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True  # the pool took it back when the server closed it


def _unavailable(error: BaseException) -> UnavailableError:
    if isinstance(error, asyncpg.DiskFullError):
        return UnavailableError(
            "The disk that the database writes to is full. Nothing was stored; free some space and try again.",
            retry_after_s=DISK_RETRY_AFTER_S,
        )
    reason = str(error) or type(error).__name__
    return UnavailableError(f"The database does not answer: {reason}", retry_after_s=RETRY_AFTER_S)


async def prepare_connection(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Make `json` and `jsonb` columns Python objects."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=_encode_json, decoder=orjson.loads)


def _encode_json(value: Any) -> str:
    return orjson.dumps(value).decode()


async def _keep_session(_: asyncpg.Connection[asyncpg.Record]) -> None:
    # Replaces the driver's RESET ALL, which costs a round trip at every release. See Pool: no session state is set.
    return


class Held:
    """A connection for the length of a block. A class, because this is on the path of every request."""

    __slots__ = ("_connection", "_pool", "_timeout_s")

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], timeout_s: float) -> None:
        self._pool = pool
        self._timeout_s = timeout_s

    async def __aenter__(self) -> Connection:
        try:
            self._connection: PoolConnectionProxy[asyncpg.Record] = await self._pool.acquire(timeout=self._timeout_s)
        except TimeoutError as error:
            raise UnavailableError(
                f"No database connection was free within {self._timeout_s:g} s", retry_after_s=RETRY_AFTER_S
            ) from error
        # Here the server only lets us in or not. A pool has been in before, so a refusal is a restore, a rotation of
        # passwords: something that will be over.
        except (asyncpg.PostgresError, OSError, asyncpg.InterfaceError) as error:
            raise _unavailable(error) from error
        return self._connection

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        absent = error is not None and is_absence(error, self._connection)
        # A connection lost while it was held cannot be reset; the pool has dropped it by the time this is raised.
        with suppress(*ABSENCE, OSError, asyncpg.InterfaceError):
            await self._pool.release(self._connection, timeout=RELEASE_TIMEOUT_S)
        if error is not None and absent:
            raise _unavailable(error) from error


class Pool:
    """Connections of one service to its schema.

    Nothing is reset between two holders but an open transaction: set only what ends with the transaction
    (`set local`, `pg_advisory_xact_lock`). A connection that PostgreSQL closed is replaced at the next acquire.
    """

    def __init__(self, dsn: str, settings: dict[str, str], pool: asyncpg.Pool[asyncpg.Record]) -> None:
        self.dsn = dsn
        self._settings = settings
        self._pool = pool

    def acquire(self, timeout_s: float = ACQUIRE_TIMEOUT_S) -> Held:
        """Hold a connection: `async with pool.acquire() as connection`; never across a model call or a message.

        Raises:
            UnavailableError: None was free within `timeout_s`, PostgreSQL does not let us in any more, or was lost
                while the connection was held.
        """
        return Held(self._pool, timeout_s)

    @asynccontextmanager
    async def transaction(self, timeout_s: float = ACQUIRE_TIMEOUT_S) -> AsyncIterator[Connection]:
        """Hold a connection in a transaction; raises as `acquire` does.

        When the commit itself raises UnavailableError, whether it happened is not known.
        """
        async with self.acquire(timeout_s) as connection, connection.transaction():
            yield connection

    async def connect(self) -> asyncpg.Connection[asyncpg.Record]:
        """Open one more connection, outside the pool, for a purpose that must not wait for it; the caller closes it."""
        return await connect(self.dsn, settings=self._settings)

    async def fetch(self, sql: str, *args: object) -> list[asyncpg.Record]:
        """Return rows of one statement on its own."""
        async with self.acquire() as connection:
            return await connection.fetch(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        """Return the first column of the first row of one statement on its own."""
        async with self.acquire() as connection:
            return await connection.fetchval(sql, *args)

    async def execute(self, sql: str, *args: object) -> str:
        """Run one statement on its own; returns the server's tag."""
        async with self.acquire() as connection:
            return await connection.execute(sql, *args)

    async def check(self, timeout_s: float = 2.0) -> None:
        """Raise UnavailableError unless PostgreSQL answers now."""
        async with self.acquire(timeout_s) as connection:
            await connection.execute("select 1", timeout=timeout_s)

    async def close(self, timeout_s: float = 5.0) -> None:
        """Wait up to `timeout_s` for held connections, then cut them."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()


def session_settings(application_name: str, statement_timeout_s: float) -> dict[str, str]:
    """Return the settings of every session of ours."""
    return {
        "application_name": application_name,
        "statement_timeout": str(int(statement_timeout_s * 1000)),
        "idle_in_transaction_session_timeout": str(int(statement_timeout_s * 1000)),
        "timezone": "UTC",
        "jit": "off",
    }


async def connect(
    dsn: str, *, settings: dict[str, str] | None = None, command_timeout_s: float | None = None
) -> asyncpg.Connection[asyncpg.Record]:
    """Open a connection of its own.

    Raises:
        UnavailableError: PostgreSQL does not answer.
        ConfigurationError: It answers, and does not know the database or the credentials.
    """
    try:
        connection = await asyncpg.connect(
            dsn, timeout=CONNECT_TIMEOUT_S, command_timeout=command_timeout_s, server_settings=settings
        )
    except REFUSAL as error:
        raise ConfigurationError(f"PostgreSQL refuses the connection: {error}") from error
    except (*ABSENCE, OSError) as error:
        raise _unavailable(error) from error
    await prepare_connection(connection)
    return connection


async def open_pool(
    dsn: str,
    *,
    application_name: str,
    min_size: int = 1,
    max_size: int = 8,
    statement_timeout_s: float = STATEMENT_TIMEOUT_S,
) -> Pool:
    """Open a pool and prove that it connects; raises as `connect` does."""
    # The driver logs a traceback each second while PostgreSQL is away; whoever needed a connection says so already.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
    settings = session_settings(application_name, statement_timeout_s)
    await (await connect(dsn, settings=settings)).close()
    pool = await asyncpg.create_pool(
        dsn,
        min_size=min_size,
        max_size=max_size,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=statement_timeout_s + COMMAND_MARGIN_S,
        server_settings=settings,
        init=prepare_connection,
        reset=_keep_session,
    )
    return Pool(dsn, settings, pool)
