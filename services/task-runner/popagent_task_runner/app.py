"""The task-runner service, put together."""

from __future__ import annotations

from typing import Final

from popagent_host import Service, ServiceDefinition
from popagent_task_runner.agents.parts import executor_of
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_task_runner.tasks.chat import ChatLimits, WorkChecks
from popagent_task_runner.tasks.deps import RunDeps, TaskDeps
from popagent_task_runner.tasks.handlers import handlers
from popagent_task_runner.tasks.worker import TaskWorker


async def build(service: Service[TaskRunnerSettings]) -> None:
    """Carry tasks out, and answer questions about them."""
    deps = RunDeps(service.pool, service.outbox, executor_of(service), limits=ChatLimits(service.bus))
    worker = TaskWorker(deps, service.bus, service.holder)
    await worker.start(service.pulse)

    async def stop_tasks() -> None:
        await worker.stop(service.settings.stop_grace_s)

    service.on_stop(stop_tasks)
    service.serve(
        handlers,
        TaskDeps(service.pool, service.outbox, WorkChecks(service.bus), worker, service.settings.queue_depth),
    )


SERVICE: Final = ServiceDefinition("task-runner", TaskRunnerSettings, build)
