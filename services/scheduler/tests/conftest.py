from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.scheduler import CreateSchedule, ScheduleFields, ScheduleView
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs, connect_as, shared_suite_nats
from services.scheduler.tests.running import Others, chat, start_scheduler, tasks

__all__ = ["connect_as", "shared_suite_nats"]


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


@pytest.fixture
def dsn(service_database: Callable[[str], str]) -> str:
    """A migrated database of this test: planners look at every schedule there is."""
    return service_database("scheduler")


class Start(Protocol):
    def __call__(self, **settings: Any) -> Awaitable[Pool]: ...


@pytest.fixture
async def others(connect_as: ConnectAs) -> AsyncIterator[Others]:
    """Those whom the scheduler asks."""
    played = Others()
    runner, door = await connect_as("task-runner"), await connect_as("chat")
    await runner.serve(tasks, played)
    await door.serve(chat, played)
    yield played
    await runner.stop_serving()
    await door.stop_serving()


@pytest.fixture
async def start(dsn: str, suite_nats: NatsServer) -> AsyncIterator[Start]:
    """Return `await start(**settings)`: one more scheduler on the database of this test."""
    async with AsyncExitStack() as closing:
        yield lambda **settings: start_scheduler(dsn, suite_nats.url, closing, **settings)


@pytest.fixture
async def pool(start: Start) -> Pool:
    """The pool of a running scheduler."""
    return await start()


@pytest.fixture
async def gateway(connect_as: ConnectAs, pool: Pool, others: Others) -> Bus:
    """Asks the scheduler as the door does."""
    return await connect_as("gateway")


class Make(Protocol):
    def __call__(self, **fields: Any) -> Awaitable[ScheduleView]: ...


@pytest.fixture
def make(gateway: Bus) -> Make:
    """Create a schedule that is due once a year unless it is said otherwise."""

    def making(**fields: Any) -> Awaitable[ScheduleView]:
        given = {"name": "Report", "prompt": "Write the report.", "cron": "0 0 1 1 *", **fields}
        return gateway.ask(CreateSchedule(command_id=new_id(), fields=ScheduleFields(**given)))

    return making
