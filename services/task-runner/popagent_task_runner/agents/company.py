"""How the company is doing, as the runs of this service may ask: tasks are its own, the others are asked."""

from __future__ import annotations

from collections.abc import Sequence

from popagent_agent.company import Company
from popagent_host import Service
from popagent_proto.chat.workspaces import ListWorkspaces, WorkspaceView
from popagent_proto.task_runner.tasks import ListTasks, TaskList
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_task_runner.tasks import lists


def company_of(service: Service[TaskRunnerSettings]) -> Company:
    """Return whom to ask."""

    async def workspaces(most: int) -> Sequence[WorkspaceView]:
        return (await service.bus.ask(ListWorkspaces(limit=most))).items

    async def tasks(query: ListTasks) -> TaskList:
        return await lists.page(service.pool, query)

    return Company(workspaces, tasks, service.bus.ask)
