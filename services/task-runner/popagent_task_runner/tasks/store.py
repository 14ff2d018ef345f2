"""Statements about tasks, but for their transcripts and for claims."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel

from popagent_db.query import Query
from popagent_proto.task_runner.tasks import TaskDetail, TaskSource, TaskSummary
from popagent_rows.closing import is_closed
from popagent_rows.leased import FENCE

SUMMARY: Final = """id, title, shown_state as state, source, workspace_id, workflow, agent_id, model, session_id,
        schedule_id, remediates, priority, attempt as attempt_count, max_attempts,
        case when state = 'queued' then run_at end as next_attempt_at, last_error_class, last_error, dead_lettered_at,
        interrupted_at, turn_id, trace_id, excerpt, version, created_at, started_at, ended_at"""

GET: Final = Query(
    TaskDetail,
    f"""
    select {SUMMARY}, prompt, output, explanation, resolution,
        (select r.id from tasks r where r.remediates = tasks.id) as remediation_id
    from tasks
    where id = $1
    """,
)


@dataclass(frozen=True)
class Version:
    """Which task, and how often it was changed."""

    id: str
    version: int


class Seen(BaseModel):
    """What a creation must know: the time, the task of this id, how many wait, and whether the workspace is closed."""

    now: datetime
    task: TaskDetail | None
    waiting: int
    closed: bool


# $2 names the workspace, $3 is the most that is counted of it, 0 for nothing.
SEEN: Final = Query(
    Seen,
    f"""
    select clock_timestamp() as now, (select to_json(x) from ({GET.sql}) x) as task,
        (select count(*) from (select 1 from tasks where state = 'queued' and workspace_id = $2 limit $3) x) as waiting,
        {is_closed("$2::text")} as closed
    """,
)

# Conflicts with every change of a row; whoever was kept waiting by it sees what was committed behind it.
LOCK_TABLE: Final = Query(None, "lock table tasks in share mode")
COUNT_IN_WORKSPACE: Final = Query(int, "select count(*) from tasks where workspace_id = $1")

# Tasks and the event of each, an array a column; see making.py. Returned are the ids of those that were stored: not
# when the id, or the remediation of this parent, is there already, nor in a workspace that is closed. A remediation is
# none of it that is new, for its parent is there.
INSERT: Final = Query(
    str,
    f"""
    with wanted as (
        select *
        from unnest(
            $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::text[],
            $9::text[], $10::text[], $11::text[], $12::text[], $13::integer[], $14::integer[], $15::timestamptz[],
            $16::text[], $17::text[], $18::text[], $19::text[]
        ) as w (
            id, title, prompt, source, workspace_id, workflow, agent_id, model, session_id, schedule_id, remediates,
            concurrency_key, priority, max_attempts, created_at, event_id, subject, payload, headers
        )
    ), created as (
        insert into tasks (
            id, title, prompt, source, workspace_id, workflow, agent_id, model, session_id, schedule_id, remediates,
            concurrency_key, priority, max_attempts, run_at, created_at
        )
        select id, title, prompt, source, workspace_id, workflow, agent_id, model, session_id, schedule_id, remediates,
            concurrency_key, priority, max_attempts, created_at, created_at
        from wanted
        where remediates is not null or not {is_closed("wanted.workspace_id")}
        on conflict do nothing
        returning id
    ), told as (
        insert into outbox (id, subject, aggregate_id, payload, headers)
        select event_id, subject, wanted.id, payload, headers::jsonb from wanted join created on created.id = wanted.id
    )
    select id from created
    """,
)

ACTIVE_OF_SCHEDULE: Final = Query(
    str,
    """
    select id from tasks
    where schedule_id = $1 and shown_state in ('queued', 'running', 'cancelling')
    order by created_at desc
    limit 1
    """,
)

SHOWN: Final = Query(TaskSummary, f"select {SUMMARY} from tasks where id = $1")
# Whoever changes a task that no attempt holds takes this lock first.
LOCK: Final = Query(TaskSummary, f"select {SUMMARY} from tasks where id = $1 for update")

CANCEL_WAITING: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set state = 'cancelled', last_error_class = 'cancelled', last_error = null, ended_at = clock_timestamp(),
        version = version + 1
    where id = $1
    returning {SUMMARY}
    """,
)
REQUEST_STOP: Final = Query(
    TaskSummary,
    f"update tasks set stop_requested = true, version = version + 1 where id = $1 returning {SUMMARY}",
)
RESOLVE: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set state = 'completed', resolution = $2, last_error_class = null, last_error = null, explanation = null,
        dead_lettered_at = null, stop_requested = false, version = version + 1
    where id = $1
    returning {SUMMARY}
    """,
)
DELETE: Final = Query(None, "delete from tasks where id = $1")

START: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set started_attempt = attempt, turn_id = $4, trace_id = $5, started_at = clock_timestamp(), ended_at = null,
        version = version + 1
    where {FENCE}
    returning {SUMMARY}
    """,
)
INTERRUPTED: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set interrupted_at = clock_timestamp(), version = version + 1
    where {FENCE} and interrupted_at is null
    returning {SUMMARY}
    """,
)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a verdict on an attempt is made of; `ran_s` counts from its start."""

    attempt: int
    max_attempts: int
    source: TaskSource
    workflow: bool
    acted: bool
    is_remediation: bool
    has_remediation: bool
    stop_requested: bool
    now: datetime
    ran_s: float
    boot_gone: bool


# Locks the attempt. It was lost by a restart when another suite began after it. A process that was started without a
# suite (its boot is itself) is a lost runner, never a restart: else a task that kills such processes is tried for ever.
FACTS: Final = Query(
    Facts,
    f"""
    select attempt, max_attempts, source, workflow,
        exists (select 1 from task_intents i where i.task_id = tasks.id and i.attempt = tasks.attempt) as acted,
        remediates is not null as is_remediation,
        exists (select 1 from tasks r where r.remediates = tasks.id) as has_remediation,
        stop_requested, clock_timestamp() as now,
        case when started_attempt = attempt then extract(epoch from clock_timestamp() - started_at) else 0 end::float8
            as ran_s,
        boot_id <> owner and exists (
            select 1 from runners r
            where r.boot_id <> r.owner and r.boot_id <> tasks.boot_id
                and r.since > coalesce(tasks.started_at, tasks.created_at)
        ) as boot_gone
    from tasks
    where {FENCE}
    for no key update
    """,
)

# Of the tasks with this key one runs at a time, see Verdict.alone.
ALONE: Final = "alone"

# How an attempt ends: $4 the state, $5 the pause before the next one, $6 what its ceiling rises by, $12 whether the
# next one runs alone.
END: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set state = $4, owner = null, lease_until = null,
        run_at = case when $4 = 'queued' then clock_timestamp() + make_interval(secs => $5) else run_at end,
        max_attempts = max_attempts + $6, last_error_class = $7, last_error = $8, explanation = $9,
        output = $10, excerpt = $11,
        concurrency_key = coalesce(nullif(concurrency_key, '{ALONE}'), case when $12 then '{ALONE}' end),
        dead_lettered_at = case when $4 = 'dead-letter' then clock_timestamp() end,
        ended_at = case when $4 = 'queued' then null else clock_timestamp() end,
        interrupted_at = null, version = version + 1
    where {FENCE}
    returning {SUMMARY}
    """,
)

LOCK_PARENT: Final = Query(TaskSummary, f"select {SUMMARY} from tasks where id = $1 and state = 'failed' for update")
# One more attempt, over the ceiling if need be. Whose runners were lost up to the last attempt runs alone again.
RETRY: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set state = 'queued', run_at = clock_timestamp(), ended_at = null, dead_lettered_at = null, explanation = null,
        max_attempts = greatest(max_attempts, attempt + 1),
        concurrency_key = case
            when state = 'dead-letter' and last_error_class = 'runner-lost' then coalesce(concurrency_key, '{ALONE}')
            else concurrency_key
        end,
        version = version + 1
    where id = $1
    returning {SUMMARY}
    """,
)
BURY: Final = Query(
    TaskSummary,
    f"""
    update tasks
    set state = 'dead-letter', dead_lettered_at = clock_timestamp(), explanation = $2, version = version + 1
    where id = $1
    returning {SUMMARY}
    """,
)

INTENT: Final = Query(
    None,
    f"""
    insert into task_intents (task_id, attempt, step, call_id, tool, arguments)
    select id, attempt, $4, $5, $6, $7 from tasks where {FENCE}
    """,
)

PRESENT: Final = Query(
    None,
    """
    insert into runners (owner, boot_id) values ($1, $2)
    on conflict (owner) do update set seen_at = clock_timestamp()
    """,
)
ABSENT: Final = Query(None, "delete from runners where owner = $1")
FORGET_RUNNERS: Final = Query(None, "delete from runners where seen_at < clock_timestamp() - interval '1 day'")
