"""Times that have come: each is written down once, whoever looks and however late, and the next one is set."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from popagent_db.pool import Connection
from popagent_kit.ids import new_id
from popagent_proto.scheduler import RunOutcome, ScheduleChanged
from popagent_scheduler import cron, store
from popagent_scheduler.deps import SchedulerDeps
from popagent_scheduler.store import StoredSchedule

log = logging.getLogger(__name__)

AT_ONCE: Final = 50
# So many missed times are counted; more are only said to be more.
COUNTED: Final = 1_000


@dataclass(frozen=True)
class PlannedRun:
    """What is written down of one time."""

    planned_at: datetime
    outcome: RunOutcome
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What follows from a time that has come."""

    runs: tuple[PlannedRun, ...]
    next_run_at: datetime | None


def plan(rule: str, planned: datetime, now: datetime, catch_up: timedelta, zone: ZoneInfo) -> Plan:
    """Decide about the time `planned`, and those that passed after it until `now`.

    The newest of them runs when it is not longer ago than `catch_up`; none of the others ever does.
    """
    times = cron.parse(rule)
    newest = max(planned, times.newest(now, zone) or planned)
    runs: list[PlannedRun] = []
    if newest > planned:
        runs.append(PlannedRun(planned, "missed", _missed(times, planned, newest, zone)))
    late = now - newest
    # What comes within seconds is not late, whatever may be made up for.
    in_time = late <= max(catch_up, timedelta(minutes=1))
    runs.append(PlannedRun(newest, "due") if in_time else PlannedRun(newest, "missed", "Nothing ran at that time."))
    return Plan(tuple(runs), next(times.after(max(newest, now), zone), None))


def next_time(rule: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the first time after `now`; None when there is none in fifty years."""
    return next(cron.parse(rule).after(now, zone), None)


def _missed(times: cron.CronRule, planned: datetime, newest: datetime, zone: ZoneInfo) -> str:
    count = 0
    for moment in times.after(planned, zone):
        if moment >= newest or count == COUNTED:
            break
        count += 1
    if count == 0:
        return "Nothing ran at that time."
    many = f"more than {COUNTED:,} others" if count == COUNTED else "another one" if count == 1 else f"{count:,} others"
    return f"Nothing ran at that time, nor at {many} after it."


async def plan_due(deps: SchedulerDeps) -> bool:
    """Write down what is due; true when there may be more."""
    async with deps.outbox.transaction() as conn:
        now = await store.NOW.value(conn)
        due = await store.DUE.all(conn, AT_ONCE)
        for schedule in due:
            await _plan_one(deps, conn, schedule, now)
    if due:
        deps.wake()
    return len(due) == AT_ONCE


async def _plan_one(deps: SchedulerDeps, conn: Connection, schedule: StoredSchedule, now: datetime) -> None:
    assert schedule.next_run_at is not None
    catch_up = timedelta(minutes=schedule.catch_up_minutes)
    planned = plan(schedule.cron, schedule.next_run_at, now, catch_up, deps.zone)
    for run in planned.runs:
        await store.ADD_RUN.run(conn, schedule.id, run.planned_at, new_id(), False, run.outcome, run.note)
        if run.outcome == "missed":
            log.warning("a time of a schedule was missed", extra={"schedule": schedule.id, "planned": run.planned_at})
    await store.PLAN_NEXT.run(conn, schedule.id, planned.next_run_at)
    await tell(deps, conn, schedule.id)


async def tell(deps: SchedulerDeps, conn: Connection, schedule_id: str) -> StoredSchedule:
    """Publish the schedule as it is, with the transaction, and return it."""
    stored = await store.GET.one(conn, schedule_id)
    event = ScheduleChanged(aggregate_id=stored.id, version=stored.version, schedule=stored.view(deps.zone.key))
    await deps.outbox.add(conn, event)
    return stored
