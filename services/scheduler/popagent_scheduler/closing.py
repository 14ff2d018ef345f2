"""Workspaces that are about to be deleted."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_proto.common import OpenedView, ReferencesView
from popagent_proto.scheduler import CloseToSchedules, OpenToSchedules
from popagent_rows import closing
from popagent_scheduler import store
from popagent_scheduler.deps import SchedulerDeps

handlers: Handlers[SchedulerDeps] = Handlers()


@handlers.answers(CloseToSchedules)
async def close(deps: SchedulerDeps, command: CloseToSchedules) -> ReferencesView:
    """Take nothing new in it, and count."""
    count = await closing.close(
        deps.pool, command.workspace_id, command.closed_by, lock=store.LOCK_TABLE, count=store.COUNT_IN_WORKSPACE
    )
    return ReferencesView(count=count)


@handlers.answers(OpenToSchedules)
async def reopen(deps: SchedulerDeps, command: OpenToSchedules) -> OpenedView:
    """Take work in it again."""
    await closing.reopen(deps.pool, command.workspace_id, command.closed_by)
    return OpenedView()
