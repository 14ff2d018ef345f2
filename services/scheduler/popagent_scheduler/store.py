"""Rows of schedules and of what came of their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from popagent_db.query import Query
from popagent_proto.scheduler import ScheduleRunView, ScheduleView
from popagent_proto.task_runner.tasks import TaskSource
from popagent_rows.closing import is_closed

# Of each schedule; older ones are dropped.
KEPT_RUNS: Final = 1_000


class StoredSchedule(BaseModel):
    """A schedule as it lies there; `version` rises with every change, also of its times."""

    model_config = ConfigDict(frozen=True)

    id: str
    source: TaskSource
    workspace_id: str
    name: str
    prompt: str
    agent_id: str | None
    model: str | None
    cron: str
    cron_words: str
    max_attempts: int
    catch_up_minutes: int
    skip_if_running: bool
    enabled: bool
    next_run_at: datetime | None
    last_run: ScheduleRunView | None
    revision: int
    version: int
    created_at: datetime
    updated_at: datetime

    def view(self, timezone: str) -> ScheduleView:
        """Return it as others see it."""
        return ScheduleView(**self.model_dump(exclude={"version"}), timezone=timezone)


def _run(alias: str) -> str:
    return f"""{alias}.schedule_id, {alias}.planned_at, {alias}.asked, {alias}.outcome, {alias}.note,
        case when {alias}.outcome in ('due', 'started') then {alias}.task_id end as task_id"""


_STORED: Final = f"""
    select s.id, s.source, s.workspace_id, s.name, s.prompt, s.agent_id, s.model, s.cron, s.cron_words, s.max_attempts,
        s.catch_up_minutes, s.skip_if_running, s.enabled, s.next_run_at,
        (
            select to_json(x) from (
                select {_run("r")} from schedule_runs r where r.schedule_id = s.id order by r.planned_at desc limit 1
            ) x
        ) as last_run,
        s.revision, s.version, s.created_at, s.updated_at
    from schedules s"""

LIST: Final = Query(
    StoredSchedule, f"{_STORED} where $1::text is null or s.workspace_id = $1 order by s.name, s.id limit $2"
)
GET: Final = Query(StoredSchedule, f"{_STORED} where s.id = $1")
LOCK: Final = Query(StoredSchedule, f"{_STORED} where s.id = $1 for update of s")
# Held while schedules are counted and one is added.
LOCK_TABLE: Final = Query(None, "lock table schedules in share row exclusive mode")
COUNT: Final = Query(int, "select count(*) from schedules where source = 'user'")
COUNT_IN_WORKSPACE: Final = Query(int, "select count(*) from schedules where workspace_id = $1")
IS_CLOSED: Final = Query(bool, f"select {is_closed('$1::text')}")
NOW: Final = Query(datetime, "select clock_timestamp()")

INSERT: Final = Query(
    None,
    """
    insert into schedules (
        id, source, workspace_id, name, prompt, agent_id, model, cron, cron_words, max_attempts, catch_up_minutes,
        skip_if_running, enabled, next_run_at
    )
    values ($1, 'user', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    """,
)

UPDATE: Final = Query(
    None,
    """
    update schedules
    set name = $2, prompt = $3, agent_id = $4, model = $5, cron = $6, cron_words = $7, max_attempts = $8,
        catch_up_minutes = $9, skip_if_running = $10, enabled = $11, next_run_at = $12, revision = revision + 1,
        version = version + 1, updated_at = clock_timestamp()
    where id = $1
    """,
)

DELETE: Final = Query(None, "delete from schedules where id = $1")

# What a scheduler looks for each second.
PROBE_DUE: Final = "exists (select 1 from schedules where next_run_at <= now())"
PROBE_HAND_OVER: Final = "exists (select 1 from schedule_runs where outcome = 'due' and try_at <= now())"

DUE: Final = Query(
    StoredSchedule,
    f"{_STORED} where s.next_run_at <= now() order by s.next_run_at limit $1 for update of s skip locked",
)
PLAN_NEXT: Final = Query(None, "update schedules set next_run_at = $2, version = version + 1 where id = $1")
TOUCH: Final = Query(None, "update schedules set version = version + 1 where id = $1")

# A time that is there has been planned.
ADD_RUN: Final = Query(
    None,
    """
    insert into schedule_runs (schedule_id, planned_at, task_id, asked, outcome, note)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (schedule_id, planned_at) do nothing
    """,
)

# A command that comes twice finds its run; `planned_at` of what is asked for is now.
ASK_RUN: Final = Query(
    None,
    """
    insert into schedule_runs (schedule_id, planned_at, task_id, asked, outcome)
    values ($1, clock_timestamp(), $2, true, 'due')
    on conflict (task_id) do nothing
    """,
)
RUN_OF: Final = Query(
    ScheduleRunView, f"select {_run('r')} from schedule_runs r where r.task_id = $1 and r.schedule_id = $2"
)

RUNS: Final = Query(
    ScheduleRunView,
    f"""
    select {_run("r")}
    from schedule_runs r
    where r.schedule_id = $1 and ($2::timestamptz is null or r.planned_at < $2)
    order by r.planned_at desc
    limit $3
    """,
)


@dataclass(frozen=True)
class DueRun:
    """A run whose task is to be made."""

    schedule_id: str
    planned_at: datetime
    task_id: str
    asked: bool
    tries: int
    source: TaskSource
    workspace_id: str
    prompt: str
    agent_id: str | None
    model: str | None
    max_attempts: int
    skip_if_running: bool


# Whoever takes runs has them for $2 seconds; after that another may.
TAKE: Final = Query(
    DueRun,
    """
    with taken as (
        select schedule_id, planned_at
        from schedule_runs
        where outcome = 'due' and try_at <= now()
        order by try_at
        limit $1
        for update skip locked
    )
    update schedule_runs r
    set tries = r.tries + 1, try_at = clock_timestamp() + make_interval(secs => $2)
    from taken, schedules s
    where r.schedule_id = taken.schedule_id and r.planned_at = taken.planned_at and s.id = r.schedule_id
    returning r.schedule_id, r.planned_at, r.task_id, r.asked, r.tries, s.source, s.workspace_id, s.prompt,
        s.agent_id, s.model, s.max_attempts, s.skip_if_running
    """,
)
SETTLE: Final = Query(
    None,
    """
    update schedule_runs set outcome = $3, note = $4
    where schedule_id = $1 and planned_at = $2 and outcome = 'due'
    """,
)
PUT_OFF: Final = Query(
    None,
    """
    update schedule_runs set try_at = clock_timestamp() + make_interval(secs => $3), note = $4
    where schedule_id = $1 and planned_at = $2 and outcome = 'due'
    """,
)

DROP_OLD: Final = Query(
    None,
    """
    delete from schedule_runs r
    using schedules s, lateral (
        select planned_at from schedule_runs where schedule_id = s.id order by planned_at desc offset $1 limit 1
    ) newest_old
    where r.schedule_id = s.id and r.planned_at <= newest_old.planned_at and r.outcome <> 'due'
    """,
)
