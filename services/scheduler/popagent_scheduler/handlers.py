"""Schedules: list, create, change, delete, run now, what came of them, and what a rule means."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Final

from popagent_bus import Handlers
from popagent_db.pool import Connection
from popagent_kit import cursors
from popagent_kit.clock import now as clock_now
from popagent_kit.errors import InvalidInputError, KeyUsedError, RevisionConflictError
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.chat.work import CheckWork
from popagent_proto.common import WorkspaceClosingError
from popagent_proto.patches import given_fields
from popagent_proto.scheduler import (
    MOST_SCHEDULES,
    PREVIEWED,
    CreateSchedule,
    CronPreview,
    DeleteSchedule,
    ListScheduleRuns,
    ListSchedules,
    PreviewCron,
    RunSchedule,
    ScheduleDeleted,
    ScheduleFields,
    ScheduleList,
    ScheduleNotFoundError,
    ScheduleRunList,
    ScheduleRunView,
    ScheduleView,
    SystemScheduleError,
    TooManySchedulesError,
    UpdateSchedule,
)
from popagent_scheduler import cron, store
from popagent_scheduler.deps import SchedulerDeps
from popagent_scheduler.planning import next_time, tell
from popagent_scheduler.store import StoredSchedule

handlers: Final[Handlers[SchedulerDeps]] = Handlers()

NULLABLE: Final = frozenset({"agent_id", "model"})


@handlers.answers(ListSchedules)
async def list_schedules(deps: SchedulerDeps, query: ListSchedules) -> ScheduleList:
    """Return them by name."""
    async with deps.pool.acquire() as conn:
        stored = await store.LIST.all(conn, query.workspace_id, MOST_SCHEDULES + 100)
    return ScheduleList(items=[each.view(deps.zone.key) for each in stored], timezone=deps.zone.key)


@handlers.answers(CreateSchedule)
async def create_schedule(deps: SchedulerDeps, command: CreateSchedule) -> ScheduleView:
    """Store it, with its first time."""
    fields = command.fields
    rule = cron.parse(fields.cron)
    place = await deps.bus.ask(
        CheckWork(workspace_id=fields.workspace_id, agent_id=fields.agent_id, model=fields.model)
    )
    async with deps.outbox.transaction() as conn:
        await store.LOCK_TABLE.run(conn)
        stored = await store.GET.first(conn, command.command_id)
        if stored is not None:
            _refuse_another(stored, fields, rule.text, place.workspace_id)
            return stored.view(deps.zone.key)
        if await store.IS_CLOSED.value(conn, place.workspace_id):
            raise WorkspaceClosingError
        if await store.COUNT.value(conn) >= MOST_SCHEDULES:
            raise TooManySchedulesError
        now = await store.NOW.value(conn)
        await store.INSERT.run(
            conn,
            command.command_id,
            place.workspace_id,
            fields.name,
            fields.prompt,
            fields.agent_id,
            fields.model,
            rule.text,
            rule.words,
            fields.max_attempts,
            fields.catch_up_minutes,
            fields.skip_if_running,
            fields.enabled,
            next_time(rule.text, now, deps.zone) if fields.enabled else None,
        )
        created = await tell(deps, conn, command.command_id)
    return created.view(deps.zone.key)


def _refuse_another(stored: StoredSchedule, asked: ScheduleFields, cron_text: str, workspace_id: str) -> None:
    """Raise KeyUsedError when the stored one was made by another command; after a change of it nobody can tell."""
    wanted = {**asked.model_dump(), "cron": cron_text, "workspace_id": workspace_id}
    if stored.revision == 0 and any(getattr(stored, name) != value for name, value in wanted.items()):
        raise KeyUsedError


@handlers.answers(UpdateSchedule)
async def update_schedule(deps: SchedulerDeps, command: UpdateSchedule) -> ScheduleView:
    """Change the given fields; the next time is planned anew when the rule or the pause changed."""
    changes = given_fields(command.changes, nullable=NULLABLE)
    if "cron" in changes:
        rule = cron.parse(changes["cron"])
        changes |= {"cron": rule.text, "cron_words": rule.words}
    if named := {name: changes[name] for name in ("agent_id", "model") if changes.get(name) is not None}:
        await deps.bus.ask(CheckWork(**named))
    async with deps.outbox.transaction() as conn:
        stored = await _locked(conn, command.schedule_id)
        if stored.source != "user" and changes.keys() - {"enabled"}:
            raise SystemScheduleError
        if stored.revision != command.changes.revision:
            raise RevisionConflictError(extra={"schedule": stored.view(deps.zone.key).wire()})
        wanted = stored.model_copy(update=changes)
        now = await store.NOW.value(conn)
        await _store(conn, wanted, _next_of(stored, wanted, now, deps))
        changed = await tell(deps, conn, stored.id)
    return changed.view(deps.zone.key)


@handlers.answers(DeleteSchedule)
async def delete_schedule(deps: SchedulerDeps, command: DeleteSchedule) -> DeletedView:
    """Delete it; what it started goes on."""
    async with deps.outbox.transaction() as conn:
        stored = await _locked_of_a_person(conn, command.schedule_id)
        await store.DELETE.run(conn, stored.id)
        event = ScheduleDeleted(aggregate_id=stored.id, version=stored.version + 1, schedule_id=stored.id)
        await deps.outbox.add(conn, event)
    return DeletedView(id=command.schedule_id)


@handlers.answers(RunSchedule)
async def run_schedule(deps: SchedulerDeps, command: RunSchedule) -> ScheduleRunView:
    """Write down that it shall run now."""
    async with deps.outbox.transaction() as conn:
        stored = await _locked_of_a_person(conn, command.schedule_id)
        if await store.ASK_RUN.run(conn, stored.id, command.command_id):
            await store.TOUCH.run(conn, stored.id)
            await tell(deps, conn, stored.id)
        run = await store.RUN_OF.first(conn, command.command_id, stored.id)
    if run is None:
        raise InvalidInputError("This id was used for something else.", field="commandId")
    deps.wake()
    return run


@handlers.answers(ListScheduleRuns)
async def list_runs(deps: SchedulerDeps, query: ListScheduleRuns) -> ScheduleRunList:
    """Return one page of the history."""
    before = None if query.cursor is None else cursors.moment_of(query.cursor)
    async with deps.pool.acquire() as conn:
        if await store.GET.first(conn, query.schedule_id) is None:
            raise ScheduleNotFoundError
        page = await store.RUNS.all(conn, query.schedule_id, before, query.limit + 1)
    items = page[: query.limit]
    more = len(page) > query.limit
    return ScheduleRunList(items=items, next_cursor=items[-1].planned_at.isoformat() if more else None)


@handlers.answers(PreviewCron)
async def preview(deps: SchedulerDeps, query: PreviewCron) -> CronPreview:
    """Say what a rule means from now on."""
    rule = cron.parse(query.cron)
    following = list(itertools.islice(rule.after(clock_now(), deps.zone), PREVIEWED))
    return CronPreview(cron=rule.text, words=rule.words, timezone=deps.zone.key, next=following)


async def _locked(conn: Connection, schedule_id: str) -> StoredSchedule:
    stored = await store.LOCK.first(conn, schedule_id)
    if stored is None:
        raise ScheduleNotFoundError
    return stored


async def _locked_of_a_person(conn: Connection, schedule_id: str) -> StoredSchedule:
    stored = await _locked(conn, schedule_id)
    if stored.source != "user":
        raise SystemScheduleError
    return stored


def _next_of(stored: StoredSchedule, wanted: StoredSchedule, now: datetime, deps: SchedulerDeps) -> datetime | None:
    if not wanted.enabled or wanted.source != "user":
        return None
    if stored.enabled and wanted.cron == stored.cron:
        return stored.next_run_at
    return next_time(wanted.cron, now, deps.zone)


async def _store(conn: Connection, wanted: StoredSchedule, next_run_at: datetime | None) -> None:
    await store.UPDATE.run(
        conn,
        wanted.id,
        wanted.name,
        wanted.prompt,
        wanted.agent_id,
        wanted.model,
        wanted.cron,
        wanted.cron_words,
        wanted.max_attempts,
        wanted.catch_up_minutes,
        wanted.skip_if_running,
        wanted.enabled,
        next_run_at,
    )
