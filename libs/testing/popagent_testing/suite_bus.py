"""A NATS with the suite's real users, rights and streams, and buses of its services; import the fixtures you need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import ClassVar, Final, Protocol

import pytest

from popagent_bus import Bus
from popagent_bus.streams import declare
from popagent_kit.ids import Id
from popagent_proto import matrix
from popagent_proto.base import Command, Event, Message, Query, View
from popagent_testing.plugin import run_apart
from popagent_testing.servers import NatsServer

PASSWORDS: Final = {name: f"password-of-{name}" for name in ("admin", *matrix.BY_NAME)}


class ConnectAs(Protocol):
    """Connect with the rights of a service; the fixture drains what it gave."""

    async def __call__(self, service: str) -> Bus:
        """Return a connected bus."""
        ...


@pytest.fixture
async def suite_nats(make_nats: Callable[[str], NatsServer]) -> NatsServer:
    """A private server with every user of the matrix and all streams; `shared_suite_nats` costs less."""
    server = make_nats(matrix.nats_authorization(PASSWORDS))
    await declare(server.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    return server


@pytest.fixture(scope="session")
def shared_suite_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The same for a whole run: for tests that neither break it nor mind what others left in its streams.

    Each conftest that imports it has one of its own.
    """
    server = NatsServer(tmp_path_factory.mktemp("suite-nats"), config=matrix.nats_authorization(PASSWORDS))
    server.start()
    run_apart(declare(server.url, matrix.ADMIN_USER, PASSWORDS["admin"]))
    yield server
    server.kill()


@pytest.fixture
async def connect_as(suite_nats: NatsServer) -> AsyncIterator[ConnectAs]:
    """Return `await connect(service)`."""
    buses: list[Bus] = []

    async def connect(service: str) -> Bus:
        bus = await Bus.connect(
            suite_nats.url, service=service, user=matrix.BY_NAME[service].role, password=PASSWORDS[service]
        )
        buses.append(bus)
        return bus

    yield connect
    for bus in buses:
        await bus.drain()


async def until(condition: Callable[[], bool] | Callable[[], Awaitable[bool]], timeout_s: float = 10.0) -> None:
    """Wait for what comes without an event of its own."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        result = condition()
        if result if isinstance(result, bool) else await result:
            return
        assert asyncio.get_running_loop().time() < deadline, "did not happen in time"
        await asyncio.sleep(0.01)


class EchoView(View):
    """What the test requests answer."""

    text: str


class Echo(Command[EchoView]):
    """A command of tests."""

    subject: ClassVar = "popagent.chat.cmd.tests-echo.v1"

    text: str


class Look(Query[EchoView]):
    """A query of tests."""

    subject: ClassVar = "popagent.chat.qry.tests-look.v1"

    text: str = ""


class StopOne(Command[EchoView]):
    """An addressed command of tests."""

    subject: ClassVar = "popagent.chat.cmd.tests-stop.v1"
    addressed_by: ClassVar = "turn_id"

    turn_id: str


class ThingHappened(Event):
    """An event of tests."""

    subject: ClassVar = "popagent.chat.evt.tests-happened.v1"

    thing: Id


# The contracts are exported from the registry, and these are not contracts.
for _message in (Echo, Look, StopOne, ThingHappened):
    Message.registry.pop(_message.subject)
