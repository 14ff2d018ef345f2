"""The task-runner service, put together."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_host import Service, ServiceDefinition
from popagent_task_runner.agents import hook_runs
from popagent_task_runner.agents.parts import agents_of
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_task_runner.tasks import closing, following
from popagent_task_runner.tasks import handlers as tasks
from popagent_task_runner.tasks.chat import ChatLimits, WorkChecks
from popagent_task_runner.tasks.creating import Creations
from popagent_task_runner.tasks.deps import RunDeps, TaskDeps
from popagent_task_runner.tasks.following import Followers
from popagent_task_runner.tasks.retention import PRUNE_EVERY_S, Retention
from popagent_task_runner.tasks.room import Room
from popagent_task_runner.tasks.worker import TaskWorker


async def build(service: Service[TaskRunnerSettings]) -> None:
    """Carry tasks out, and answer questions about them."""
    executor, hooks = agents_of(service)
    deps = RunDeps(
        service.pool,
        service.outbox,
        executor,
        limits=ChatLimits(service.bus),
        observe=hooks.heard,
        grew=Followers(service.bus).wake,
    )
    worker = TaskWorker(deps, service.bus, service.holder)
    await worker.start(service.pulse)

    async def stop_tasks() -> None:
        await worker.stop(service.settings.stop_grace_s)

    service.on_stop(stop_tasks)
    retention = Retention(service.pool, service.outbox, service.settings.kept_days)
    service.pulse.every(PRUNE_EVERY_S, "old tasks", retention.prune)
    service.serve(
        all_handlers(),
        TaskDeps(
            service.pool,
            service.outbox,
            WorkChecks(service.bus),
            worker,
            Room(service.settings.queue_depth),
            Creations(service.pool),
        ),
    )


def all_handlers() -> Handlers[TaskDeps]:
    """Return the handlers of every slice."""
    handlers = Handlers[TaskDeps]()
    for part in (tasks, following, closing, hook_runs):
        handlers.include(part.handlers)
    return handlers


SERVICE: Final = ServiceDefinition("task-runner", TaskRunnerSettings, build)
