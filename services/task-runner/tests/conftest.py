from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool, open_pool
from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.task_runner.tasks import CreateTask, CreateTaskBody, GetTask, TaskState, TaskSummary, TaskView
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs, connect_as, shared_suite_nats
from popagent_testing.task_running import EFFECTS, Runner, start_runner

__all__ = ["connect_as", "shared_suite_nats"]


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


@pytest.fixture
async def dsn(service_database: Callable[[str], str]) -> str:
    """A migrated database of this test, with a table for effects."""
    dsn = service_database("task-runner")
    pool = await open_pool(dsn, application_name="test", max_size=1)
    await pool.execute(EFFECTS)
    await pool.close()
    return dsn


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    """The tables, seen from beside the service."""
    opened = await open_pool(dsn, application_name="test", max_size=2)
    yield opened
    await opened.close()


class Start(Protocol):
    def __call__(self, *args: Any, **options: Any) -> Awaitable[Runner]: ...


@pytest.fixture
async def start(dsn: str, suite_nats: NatsServer) -> AsyncIterator[Start]:
    """Return `await start(**options)`: a runner in this process; the fixture stops what is left."""
    started: list[Runner] = []

    async def starting(*args: Any, **options: Any) -> Runner:
        started.append(await start_runner(dsn, suite_nats.url, *args, **options))
        return started[-1]

    yield starting
    for runner in started:
        if not runner.bus.client.is_closed:
            await runner.stop()


@dataclass
class Door:
    """What the gateway does: asks, and hears events."""

    bus: Bus
    pool: Pool
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def ask(self, message: Any) -> Any:
        return await self.bus.ask(message, timeout_s=10, patience_s=2)

    async def create(self, prompt: str = "answer done", **fields: Any) -> TaskSummary:
        given = {
            name: fields.pop(name)
            for name in ("command_id", "source", "workflow", "schedule_id", "session_id")
            if name in fields
        }
        command = {"command_id": new_id(), **given}
        created: TaskSummary = await self.ask(CreateTask(**command, body=CreateTaskBody(prompt=prompt, **fields)))
        return created

    async def get(self, task_id: str) -> TaskView:
        view: TaskView = await self.ask(GetTask(task_id=task_id))
        return view

    async def until(self, task_id: str, *states: TaskState, timeout_s: float = 15) -> TaskView:
        """Wait for one of the states, and return the task."""
        async with asyncio.timeout(timeout_s):
            while await self.pool.fetchval("select shown_state from tasks where id = $1", task_id) not in states:
                await asyncio.sleep(0.02)
        return await self.get(task_id)

    async def remediation_of(self, task_id: str) -> str:
        async with asyncio.timeout(10):
            while not (found := await self.pool.fetchval("select id from tasks where remediates = $1", task_id)):
                await asyncio.sleep(0.02)
        return str(found)

    def told(self, task_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the events of the task so far: the verb and what they say, in order of version."""
        mine = [(verb, event) for verb, event in self.events if event["aggregateId"] == task_id]
        return sorted(mine, key=lambda pair: int(pair[1]["version"]))

    async def until_told(self, task_id: str, count: int, timeout_s: float = 10) -> list[tuple[str, dict[str, Any]]]:
        async with asyncio.timeout(timeout_s):
            while len(told := self.told(task_id)) < count:
                await asyncio.sleep(0.02)
        return told

    async def hear(self) -> None:
        async def take(message: Any) -> None:
            verb = message.subject.split(".")[3].removeprefix("tasks-")
            self.events.append((verb, json.loads(message.data)))

        await self.bus.client.subscribe("popagent.task-runner.evt.>", cb=take)


@pytest.fixture
async def door(connect_as: ConnectAs, pool: Pool) -> Door:
    door = Door(await connect_as("gateway"), pool)
    await door.hear()
    return door


@pytest.fixture
def refusal() -> Callable[[Awaitable[Any]], Awaitable[AppError]]:
    """Return `await refusal(work)`: why it is refused."""

    async def refused(work: Awaitable[Any]) -> AppError:
        with pytest.raises(AppError) as caught:
            await work
        return caught.value

    return refused
