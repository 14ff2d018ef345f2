"""The whole service as its host runs it, beside a peer that answers as chat does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from popagent_host import ServiceDefinition
from popagent_host.run import live
from popagent_proto import matrix
from popagent_proto.common import TaskRunnerHealth
from popagent_task_runner.app import SERVICE, runner_of
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_task_runner.tasks.executor import Finished, TaskRun
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import PASSWORDS

from .test_asking_chat import peer

__all__ = ["peer"]


async def count(run: TaskRun) -> Finished:
    return Finished(f"{run.prompt} Seven.")


@asynccontextmanager
async def serving(definition: ServiceDefinition[TaskRunnerSettings], dsn: str, nats: NatsServer) -> AsyncIterator[None]:
    """Run the service, and see that it stops without an error."""
    place = urlsplit(nats.url)
    url = f"nats://{matrix.BY_NAME['task-runner'].role}:{PASSWORDS['task-runner']}@{place.hostname}:{place.port}"
    values = {"database_url": SecretStr(dsn), "nats_url": SecretStr(url)}
    settings = TaskRunnerSettings.for_service("task-runner").model_validate(values)
    stop = asyncio.Event()
    service = asyncio.create_task(live(definition, settings, stop))
    yield
    stop.set()
    assert await service == 0


async def test_a_task_is_carried_out_by_the_executor_of_the_service(
    dsn: str, suite_nats: NatsServer, door: Any, peer: Any
) -> None:
    async with serving(ServiceDefinition("task-runner", TaskRunnerSettings, runner_of(count)), dsn, suite_nats):
        created = await door.create("Count the herons.")
        task = await door.until(created.id, "completed")

    assert (task.workspace_id, task.output) == ("home", "Count the herons. Seven.")


async def test_without_an_executor_tasks_wait_and_health_says_so(
    dsn: str, suite_nats: NatsServer, door: Any, peer: Any
) -> None:
    async with serving(SERVICE, dsn, suite_nats):
        created = await door.create("Count the herons.")
        health = await door.ask(TaskRunnerHealth())
        task = await door.get(created.id)

    assert task.state == "queued"
    assert (health.ready, health.checks["executor"]) == (True, "ok")
    assert "carries none out" in health.details["executor"]
