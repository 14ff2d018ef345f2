"""The audit of hooks in the runs of tasks."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_proto.chat.hooks import HookRunList
from popagent_proto.task_runner.hooks import ListTaskHookRuns
from popagent_proto.task_runner.tasks import TaskNotFoundError
from popagent_runs.hooks.audited import audit_page
from popagent_task_runner.agents import store
from popagent_task_runner.tasks.deps import TaskDeps

handlers: Handlers[TaskDeps] = Handlers()


@handlers.answers(ListTaskHookRuns)
async def list_runs(deps: TaskDeps, query: ListTaskHookRuns) -> HookRunList:
    """Return one page of a task's audit, the oldest first."""
    async with deps.pool.acquire() as conn:
        if await store.VERSION.first(conn, query.task_id) is None:
            raise TaskNotFoundError
        return await audit_page(
            conn, store.AUDIT, query.task_id, turn_id=query.turn_id, cursor=query.cursor, limit=query.limit
        )
