"""The task-runner service, put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from popagent_bus import Handlers
from popagent_host import Service, ServiceDefinition
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_task_runner.tasks.chat import ChatCatalogue, ChatLimits
from popagent_task_runner.tasks.deps import RunDeps, TaskDeps, Tasks
from popagent_task_runner.tasks.executor import Executor
from popagent_task_runner.tasks.handlers import handlers
from popagent_task_runner.tasks.room import Room
from popagent_task_runner.tasks.worker import Runners, TaskWorker


def runner_of(executor: Executor | None) -> Callable[[Service[TaskRunnerSettings]], Awaitable[None]]:
    """Return what builds the service around an executor; without one it takes tasks and runs none."""

    async def build(service: Service[TaskRunnerSettings]) -> None:
        tasks: Tasks = Runners(service.bus)
        if executor is None:
            service.check("executor", _nothing_runs, decisive=False)
        else:
            deps = RunDeps(service.pool, service.outbox, executor, limits=ChatLimits(service.bus))
            tasks = worker = TaskWorker(deps, service.bus, service.holder)
            await worker.start(service.pulse)

            async def stop_tasks() -> None:
                await worker.stop(service.settings.stop_grace_s)

            service.on_stop(stop_tasks)
        served: Handlers[TaskDeps] = Handlers()
        served.include(handlers)
        service.serve(
            served,
            TaskDeps(
                service.pool, service.outbox, ChatCatalogue(service.bus), tasks, Room(service.settings.queue_depth)
            ),
        )

    return build


async def _nothing_runs() -> str:
    return "Background tasks are stored; this version carries none out."


SERVICE: Final = ServiceDefinition("task-runner", TaskRunnerSettings, runner_of(None))
