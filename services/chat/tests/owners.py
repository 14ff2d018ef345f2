"""Those whom chat asks before it deletes a workspace, played by the test."""

from __future__ import annotations

from dataclasses import dataclass, field

from popagent_bus import Bus, Handlers
from popagent_proto.common import OpenedView, ReferencesView
from popagent_proto.docs_indexer.tree import CloseToDocs, OpenToDocs
from popagent_proto.scheduler import CloseToSchedules, OpenToSchedules
from popagent_proto.task_runner.workspaces import CloseToTasks, OpenToTasks


@dataclass
class Owners:
    """How much refers to any workspace, and which are closed to whom at the moment."""

    scheduler: Bus
    docs_indexer: Bus
    tasks: int = 0
    schedules: int = 0
    documents: int = 0
    closed: set[tuple[str, str]] = field(default_factory=set)


task_runner: Handlers[Owners] = Handlers()
scheduler: Handlers[Owners] = Handlers()
docs_indexer: Handlers[Owners] = Handlers()


@task_runner.answers(CloseToTasks)
async def close_to_tasks(owners: Owners, command: CloseToTasks) -> ReferencesView:
    owners.closed.add(("tasks", command.closed_by))
    return ReferencesView(count=owners.tasks)


@task_runner.answers(OpenToTasks)
async def open_to_tasks(owners: Owners, command: OpenToTasks) -> OpenedView:
    owners.closed.discard(("tasks", command.closed_by))
    return OpenedView()


@scheduler.answers(CloseToSchedules)
async def close_to_schedules(owners: Owners, command: CloseToSchedules) -> ReferencesView:
    owners.closed.add(("schedules", command.closed_by))
    return ReferencesView(count=owners.schedules)


@scheduler.answers(OpenToSchedules)
async def open_to_schedules(owners: Owners, command: OpenToSchedules) -> OpenedView:
    owners.closed.discard(("schedules", command.closed_by))
    return OpenedView()


@docs_indexer.answers(CloseToDocs)
async def close_to_docs(owners: Owners, command: CloseToDocs) -> ReferencesView:
    owners.closed.add(("documents", command.closed_by))
    return ReferencesView(count=owners.documents)


@docs_indexer.answers(OpenToDocs)
async def open_to_docs(owners: Owners, command: OpenToDocs) -> OpenedView:
    owners.closed.discard(("documents", command.closed_by))
    return OpenedView()
