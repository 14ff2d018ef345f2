"""Where a run asks how the company is doing; its owners keep that, and a run keeps nothing of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from popagent_proto.chat.workspaces import WorkspaceView
from popagent_proto.scheduler import ListSchedules, ScheduleList
from popagent_proto.task_runner.tasks import ListTasks, TaskList


@dataclass(frozen=True, slots=True)
class Company:
    """The owners of what is told of the company; each may raise AppError. `workspaces` is given how many at most."""

    workspaces: Callable[[int], Awaitable[Sequence[WorkspaceView]]]
    tasks: Callable[[ListTasks], Awaitable[TaskList]]
    schedules: Callable[[ListSchedules], Awaitable[ScheduleList]]
