"""A new task with the event that tells of it: stored in one statement, however many there are of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from popagent_kit import json
from popagent_proto.task_runner.tasks import TaskChanged, TaskSource, TaskSummary
from popagent_rows import outbox
from popagent_task_runner.tasks.prompts import title_of

# DESIGN §3: one active self-update at a time.
SELF_UPDATE_KEY: Final = "self-update"


@dataclass(frozen=True)
class NewTask:
    """A task before it is stored; `columns` are the arguments of store.INSERT for it."""

    task: TaskSummary
    prompt: str
    columns: tuple[object, ...]


def new_task(
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
) -> NewTask:
    """Return the task and its event, which carries the trace that is current here; `now` is the database's time."""
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
    event_id, subject, _, payload, headers = outbox.row_of(TaskChanged(aggregate_id=task_id, version=0, task=task))
    columns = (
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
        event_id,
        subject,
        payload,
        json.dumps(headers).decode(),
    )
    return NewTask(task, prompt, columns)


def arrays_of(new: Sequence[NewTask]) -> list[list[object]]:
    """Return the arguments of store.INSERT."""
    return [list(column) for column in zip(*(each.columns for each in new), strict=True)]
