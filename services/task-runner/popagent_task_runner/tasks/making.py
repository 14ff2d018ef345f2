"""Storing a new task with the event that tells of it, in one statement."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from popagent_db.pool import Connection
from popagent_proto.task_runner.tasks import TaskChanged, TaskSource, TaskSummary
from popagent_rows import outbox
from popagent_task_runner.tasks import store
from popagent_task_runner.tasks.prompts import title_of

# DESIGN §3: one active self-update at a time.
SELF_UPDATE_KEY: Final = "self-update"


async def insert(
    conn: Connection,
    *,
    task_id: str,
    prompt: str,
    workspace_id: str,
    now: datetime,
    max_attempts: int,
    source: TaskSource = "user",
    workflow: bool = False,
    agent_id: str | None = None,
    model: str | None = None,
    session_id: str | None = None,
    schedule_id: str | None = None,
    remediates: str | None = None,
    priority: int = 0,
    title: str | None = None,
) -> TaskSummary | None:
    """Store the task and its event; None when the id, or the remediation of this parent, is there already.

    Wake the relay after the commit.
    """
    task = TaskSummary(
        id=task_id,
        title=title_of(title or prompt),
        state="queued",
        source=source,
        workspace_id=workspace_id,
        workflow=workflow,
        agent_id=agent_id,
        model=model,
        session_id=session_id,
        schedule_id=schedule_id,
        remediates=remediates,
        priority=priority,
        attempt_count=0,
        max_attempts=max_attempts,
        next_attempt_at=now,
        last_error_class=None,
        last_error=None,
        dead_lettered_at=None,
        interrupted_at=None,
        turn_id=None,
        trace_id=None,
        excerpt="",
        version=0,
        created_at=now,
        started_at=None,
        ended_at=None,
    )
    key = SELF_UPDATE_KEY if source == "self-update" and remediates is None else None
    stored = await store.INSERT.first(
        conn,
        task_id,
        task.title,
        prompt,
        source,
        workspace_id,
        workflow,
        agent_id,
        model,
        session_id,
        schedule_id,
        remediates,
        key,
        priority,
        max_attempts,
        now,
        now,
        *outbox.row_of(TaskChanged(aggregate_id=task_id, version=0, task=task)),
    )
    return None if stored is None else task
