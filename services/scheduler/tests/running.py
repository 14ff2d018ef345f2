"""The scheduler in this process, wired as its host wires it, with those whom it asks played by the test."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from popagent_bus import Bus, Handlers
from popagent_db.pool import Pool, open_pool
from popagent_host import Service
from popagent_host.health import Health
from popagent_kit.clock import now
from popagent_kit.errors import AppError, InvalidInputError
from popagent_proto import matrix
from popagent_proto.chat.work import CheckWork, WorkPlace
from popagent_proto.task_runner.tasks import CreateTask, ScheduleBusyError, TaskSummary
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_scheduler.app import build
from popagent_scheduler.settings import SchedulerSettings
from popagent_testing.suite_bus import PASSWORDS


@dataclass
class Others:
    """Makes tasks as the task-runner does, and knows one workspace and one agent as chat does."""

    made: dict[str, CreateTask] = field(default_factory=dict)
    asked: int = 0
    trouble: AppError | None = None
    busy: bool = False


tasks: Handlers[Others] = Handlers()
chat: Handlers[Others] = Handlers()


@tasks.answers(CreateTask)
async def create_task(others: Others, command: CreateTask) -> TaskSummary:
    others.asked += 1
    if others.trouble is not None:
        raise others.trouble
    if command.unless_scheduled and others.busy:
        raise ScheduleBusyError("Task 7 of an earlier time still runs.")
    others.made.setdefault(command.command_id, command)
    return summary(command)


@chat.answers(CheckWork)
async def check_work(_: Others, query: CheckWork) -> WorkPlace:
    if query.workspace_id not in (None, "default"):
        raise InvalidInputError("There is no workspace with this id.", field="workspaceId")
    if query.agent_id not in (None, "researcher"):
        raise InvalidInputError("There is no such agent.", field="agentId")
    return WorkPlace(workspace_id="default")


def summary(command: CreateTask) -> TaskSummary:
    return TaskSummary(
        id=command.command_id,
        title=command.body.prompt[:60],
        state="queued",
        source=command.source,
        workspace_id=command.body.workspace_id or "default",
        workflow=False,
        agent_id=None,
        model=None,
        session_id=None,
        schedule_id=command.schedule_id,
        remediates=None,
        priority=0,
        attempt_count=0,
        max_attempts=command.body.max_attempts,
        next_attempt_at=now(),
        last_error_class=None,
        last_error=None,
        dead_lettered_at=None,
        interrupted_at=None,
        turn_id=None,
        trace_id=None,
        excerpt="",
        version=0,
        created_at=now(),
        started_at=None,
        ended_at=None,
    )


async def start_scheduler(dsn: str, nats_url: str, closing: AsyncExitStack, **settings: Any) -> Pool:
    """Start one more scheduler; `closing` ends it."""
    pool = await open_pool(dsn, application_name="popagent-scheduler", max_size=4)
    closing.push_async_callback(pool.close)
    user = matrix.BY_NAME["scheduler"].role
    bus = await Bus.connect(nats_url, service="scheduler", user=user, password=PASSWORDS["scheduler"])
    closing.push_async_callback(bus.drain)
    pulse = Pulse(pool, period_s=0.05)
    pulse.start()
    closing.push_async_callback(pulse.stop)
    outbox = Outbox(pool, bus.publish)
    outbox.start(pulse)
    closing.push_async_callback(outbox.stop)
    service: Service[SchedulerSettings] = Service(
        "scheduler",
        SchedulerSettings.for_service("scheduler").model_validate({"timezone": "Europe/Berlin", **settings}),
        pool,
        bus,
        outbox,
        pulse,
        Holder.of_this_process(),
        Health("scheduler", "test"),
        closing,
        asyncio.get_running_loop().create_future(),
    )
    await build(service)
    assert service.served is not None
    await bus.serve(service.served.handlers, service.served.deps)
    closing.push_async_callback(bus.stop_serving)
    return pool
