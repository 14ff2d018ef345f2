"""Workspaces that are about to be deleted."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_proto.common import OpenedView, ReferencesView
from popagent_proto.task_runner.workspaces import CloseToTasks, OpenToTasks
from popagent_rows import closing
from popagent_task_runner.tasks import store
from popagent_task_runner.tasks.deps import TaskDeps

handlers: Handlers[TaskDeps] = Handlers()


@handlers.answers(CloseToTasks)
async def close(deps: TaskDeps, command: CloseToTasks) -> ReferencesView:
    """Take nothing new in it, and count."""
    count = await closing.close(
        deps.pool, command.workspace_id, command.closed_by, lock=store.LOCK_TABLE, count=store.COUNT_IN_WORKSPACE
    )
    return ReferencesView(count=count)


@handlers.answers(OpenToTasks)
async def reopen(deps: TaskDeps, command: OpenToTasks) -> OpenedView:
    """Take work in it again."""
    await closing.reopen(deps.pool, command.workspace_id, command.closed_by)
    return OpenedView()
