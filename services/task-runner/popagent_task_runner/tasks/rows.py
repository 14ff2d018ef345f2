"""The leased row of a task, and which one is claimed next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import asyncpg

from popagent_db.pool import Connection
from popagent_proto.task_runner.tasks import TaskErrorClass, TaskSource
from popagent_rows.leased import Holder, LeasedRow, LeasedRows

# DESIGN §5.
LEASE_S: Final = 30.0
BEAT_S: Final = 10.0
ONE_RUNNING: Final = "tasks_one_running"


@dataclass(frozen=True, kw_only=True)
class LeasedTask(LeasedRow):
    """A task as its runner needs it; turn and trace are those of `started_attempt`."""

    source: TaskSource
    workspace_id: str
    workflow: bool
    agent_id: str | None
    model: str | None
    session_id: str | None
    schedule_id: str | None
    remediates: str | None
    title: str
    prompt: str
    max_attempts: int
    started_attempt: int
    turn_id: str | None
    trace_id: str | None
    last_error_class: TaskErrorClass | None
    last_error: str | None
    created_at: datetime


# The highest priority first. Within one, workspaces take turns: those with the fewest tasks running or chosen before,
# then those that were served longest ago. Each of the first 500 workspaces that wait offers as many as there are free
# places, and some more because another runner may be taking the first ones now.
CLAIM: Final = """
    with recursive places (workspace_id, number) as (
        (select workspace_id, 1 from tasks where state = 'queued' order by workspace_id limit 1)
        union all
        select (
            select t.workspace_id from tasks t
            where t.state = 'queued' and t.workspace_id > places.workspace_id
            order by t.workspace_id
            limit 1
        ), number + 1
        from places
        where places.workspace_id is not null and number < 500
    ), busy as (
        select workspace_id, count(*) as running from tasks where state = 'running' group by workspace_id
    ), candidates as (
        select c.id, c.priority, c.run_at,
            row_number() over (partition by c.workspace_id, c.priority order by c.run_at, c.id)
                + coalesce(busy.running, 0) as round,
            row_number() over (
                partition by coalesce(c.concurrency_key, c.id) order by c.priority desc, c.run_at, c.id
            ) as of_key,
            served.at as served_at
        from places
        cross join lateral (
            select t.id, t.workspace_id, t.priority, t.run_at, t.concurrency_key
            from tasks t
            where t.state = 'queued' and t.workspace_id = places.workspace_id and t.run_at <= now()
                and (t.concurrency_key is null or not exists (
                    select 1 from tasks r where r.state = 'running' and r.concurrency_key = t.concurrency_key
                ))
            order by t.priority desc, t.run_at, t.id
            limit $1 + 16
        ) c
        cross join lateral (
            select max(s.started_at) as at from tasks s where s.workspace_id = c.workspace_id
        ) served
        left join busy on busy.workspace_id = c.workspace_id
    ), chosen as (
        select id, row_number() over (order by priority desc, round, served_at nulls first, run_at, id) as place
        from candidates
        where of_key = 1
        order by place
        limit $1 + 64
    )
    select t.id
    from chosen
    join tasks t on t.id = chosen.id
    where t.state = 'queued'
    order by chosen.place
    limit $1
    for update of t skip locked
"""


class TaskRows(LeasedRows[LeasedTask]):
    """The table of tasks."""

    def __init__(self, *, lease_s: float = LEASE_S, beat_s: float = BEAT_S) -> None:
        super().__init__("tasks", LeasedTask, lease_s=lease_s, beat_s=beat_s, claim=CLAIM)

    async def claim(self, connection: Connection, holder: Holder, limit: int) -> list[LeasedTask]:
        """Take up to `limit` due tasks; none when another runner took one with the same key at this very moment."""
        try:
            return await super().claim(connection, holder, limit)
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name != ONE_RUNNING:
                raise
            return []


TASKS: Final = TaskRows()
