"""Pytest plugin: real PostgreSQL and NATS, one of each per test process, started when first asked for."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from popagent_proto.matrix import BY_NAME
from popagent_testing.known_secrets import secrets_are_forgotten
from popagent_testing.loop_errors import no_error_is_left_in_the_loop
from popagent_testing.servers import NatsServer, PostgresServer

__all__ = ["no_error_is_left_in_the_loop", "secrets_are_forgotten"]

T = TypeVar("T")
LOOPBACK: Final = "127.0.0.1,::1,localhost"
INFRA: Final = ("auto", "embedded", "external")


def backend() -> str:
    """Return `embedded`, or `external` (POPAGENT_TEST_DATABASE_URL and _NATS_URL), as POPAGENT_TEST_INFRA says."""
    wanted = os.environ.get("POPAGENT_TEST_INFRA", "auto")
    if wanted not in INFRA:
        raise pytest.UsageError(f"POPAGENT_TEST_INFRA is one of {', '.join(INFRA)}, not {wanted!r}")
    given = bool(os.environ.get("POPAGENT_TEST_DATABASE_URL") and os.environ.get("POPAGENT_TEST_NATS_URL"))
    if wanted == "external" and not given:
        raise pytest.UsageError(
            "POPAGENT_TEST_INFRA=external needs POPAGENT_TEST_DATABASE_URL and POPAGENT_TEST_NATS_URL"
        )
    if wanted == "auto":
        return "external" if given else "embedded"
    return wanted


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let no test reach further than this machine."""
    if not config.getoption("--allow-hosts"):
        config.option.allow_hosts = LOOPBACK
        config.option.allow_unix_socket = True


def pytest_report_header() -> str:
    """Say which servers the run uses."""
    return f"infrastructure: {backend()} PostgreSQL and NATS (POPAGENT_TEST_INFRA); sockets: loopback only"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write half characters out as escapes: a report with one cannot leave a test process, and would end it."""
    report = yield
    report.sections = [(name, _whole(text)) for name, text in report.sections]
    return report


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in a thread with a loop of its own, so that a plain fixture may wait for it."""
    result: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 (raised again in the thread that asked)
            failure.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


async def execute(dsn: str, *statements: str) -> None:
    """Run statements one by one, outside a transaction."""
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def with_database(dsn: str, database: str) -> str:
    """Return `dsn` with another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{database}"))


class PostgresAddress(Protocol):
    """What tests need of the shared PostgreSQL: a superuser's DSN."""

    def dsn(self, database: str = "postgres") -> str:
        """Return the superuser's DSN."""
        ...


class ExternalPostgres:
    """A PostgreSQL that somebody else runs; test databases are made and dropped in it."""

    def __init__(self, admin_dsn: str) -> None:
        self.admin_dsn = admin_dsn

    def dsn(self, database: str = "postgres") -> str:
        """Return the given DSN, with `database`."""
        return with_database(self.admin_dsn, database)


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this test process's servers."""
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def postgres(server_folder: Path) -> Iterator[PostgresAddress]:
    """The PostgreSQL of this test process. Shared: break `private_postgres` instead."""
    if backend() == "external":
        yield ExternalPostgres(os.environ["POPAGENT_TEST_DATABASE_URL"])
        return
    # A kill -9 loses nothing without fsync; only a crash of the machine would, and then the folder is gone anyway.
    server = PostgresServer(server_folder, settings={"fsync": "off"})
    server.start()
    yield server
    server.stop(immediate=True)


class NatsAddress(Protocol):
    """What tests need of the shared NATS."""

    @property
    def url(self) -> str:
        """The address."""
        ...


class ExternalNats:
    """A NATS that somebody else runs; use subjects of your own."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture(scope="session")
def nats_server(server_folder: Path) -> Iterator[NatsAddress]:
    """The NATS of this test process, open to everybody. Shared: break `private_nats` instead."""
    if backend() == "external":
        yield ExternalNats(os.environ["POPAGENT_TEST_NATS_URL"])
        return
    server = NatsServer(server_folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def private_postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    """A running PostgreSQL for one test: `.kill() .stop(immediate=True) .restart() .pause() .resume() .dsn(name)`."""
    server = PostgresServer(tmp_path)
    server.start()
    yield server
    server.stop(immediate=True)


@pytest.fixture
def private_nats(tmp_path: Path) -> Iterator[NatsServer]:
    """A running NATS for one test: `.kill() .stop() .restart() .wipe() .pause() .resume() .url`."""
    server = NatsServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def make_nats(tmp_path: Path) -> Iterator[Callable[[str], NatsServer]]:
    """Return a function that starts a private NATS with an authorization block."""
    servers: list[NatsServer] = []

    def make(config: str) -> NatsServer:
        folder = tmp_path / f"nats-{len(servers)}"
        folder.mkdir()
        server = NatsServer(folder, config=config)
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        server.kill()


@pytest.fixture(scope="session")
def make_database(postgres: PostgresAddress) -> Iterator[Callable[..., str]]:
    """Return `make(template="template0")`: it makes a fresh database and returns a superuser's DSN of it."""
    made: list[str] = []

    def make(template: str = "template0") -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        run_apart(execute(postgres.dsn(), f'create database "{name}" template "{template}"'))
        made.append(name)
        return postgres.dsn(name)

    yield make
    if made and backend() == "external":
        run_apart(execute(postgres.dsn(), *(f'drop database if exists "{name}" with (force)' for name in made)))


@pytest.fixture(scope="module")
def database(make_database: Callable[..., str]) -> str:
    """A superuser's DSN of an empty database of this module."""
    return make_database()


Prepare = Callable[[str, str], Awaitable[None]]


@pytest.fixture(scope="session")
def templates(postgres: PostgresAddress, make_database: Callable[..., str]) -> Callable[[str, Prepare], str]:
    """Return `copy(key, prepare)`: a fresh database like the one that `await prepare(admin_dsn, key)` made once."""
    ready: dict[str, str] = {}

    def copy(key: str, prepare: Prepare) -> str:
        if key not in ready:
            dsn = make_database()

            async def fill() -> None:
                await prepare(dsn, key)

            run_apart(fill())
            ready[key] = urlsplit(dsn).path.lstrip("/")
        return make_database(ready[key])

    return copy


def role_password(service: str) -> str:
    """Return the password of the service's role on the shared server: one server has one, whoever bootstraps it."""
    return f"{BY_NAME[service].schema}_test"


async def _bootstrap_and_migrate(dsn: str, service: str) -> None:
    from popagent_db.bootstrap import bootstrap, role_dsn  # noqa: PLC0415 (not every run needs a database)
    from popagent_db.migrate import migrate  # noqa: PLC0415

    await bootstrap(dsn, [service], {service: role_password(service)})
    await migrate(role_dsn(dsn, service, role_password(service)), service)


@pytest.fixture(scope="session")
def service_database(templates: Callable[[str, Prepare], str]) -> Callable[[str], str]:
    """Return `make("chat")`: a fresh, migrated database of that service, as the DSN of the service's own role."""
    from popagent_db.bootstrap import role_dsn  # noqa: PLC0415 (not every run needs a database)

    def make(service: str) -> str:
        return role_dsn(templates(service, _bootstrap_and_migrate), service, role_password(service))

    return make
