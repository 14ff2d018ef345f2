"""How an attempt ends: state, events and what follows in one transaction, under the fence."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from popagent_db.pool import Connection
from popagent_kit.errors import UnavailableError
from popagent_kit.ids import new_id
from popagent_kit.text import excerpt
from popagent_proto.task_runner.tasks import (
    DEFAULT_ATTEMPTS,
    EVENT_EXCERPT_CHARACTERS,
    EXCERPT_CHARACTERS,
    OUTPUT_CHARACTERS,
    TaskChanged,
    TaskErrorClass,
    TaskOutcome,
    TaskStopped,
    TaskSummary,
)
from popagent_rows.leased import Lease, LeaseLostError
from popagent_rows.outbox import Outbox
from popagent_task_runner.tasks import making, store
from popagent_task_runner.tasks.causes import storable
from popagent_task_runner.tasks.deps import RunDeps
from popagent_task_runner.tasks.prompts import remediation_prompt, remediation_title
from popagent_task_runner.tasks.rows import LeasedTask
from popagent_task_runner.tasks.states import Attempt, Verdict, after, cause_of_loss, exhausted, judge
from popagent_task_runner.tasks.store import Facts

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2


@dataclass(frozen=True)
class Told:
    """The turn and the trace under which the start of the attempt was told."""

    turn_id: str
    trace_id: str | None


@dataclass(frozen=True)
class Ending:
    """How an attempt ended: with output, or by a cause."""

    cause: TaskErrorClass | None = None
    error: str | None = None
    output: str = ""


News = TaskStopped | TaskChanged
"""The event that tells of an end, with the task as it is then."""


async def end_attempt(deps: RunDeps, lease: Lease[LeasedTask], told: Told, ending: Ending) -> News | None:
    """Store the end, again and again while PostgreSQL is away, until another runner has the task; call `over` before.

    None when a commit was not answered and this attempt is found to be over: it was carried out, or another runner
    ended the attempt.

    Raises:
        LeaseLostError: Another runner has the task; nothing was written.
    """
    unsure = False
    while True:
        try:
            async with deps.outbox.transaction() as conn:
                return await end(conn, deps.outbox, lease.row, told, ending)
        except UnavailableError as error:
            unsure = True
            log.warning("the end of a task waits for the database", extra={"task": lease.row.id, "reason": str(error)})
            await asyncio.sleep(RETRY_S)
        except LeaseLostError:
            if unsure:
                return None
            raise


async def end_lost(conn: Connection, outbox: Outbox, task: LeasedTask, *, timeout_s: float) -> News:
    """End an attempt whose lease ran out, in the transaction that locks it, and return what is told once committed.

    Raises:
        LeaseLostError: It was ended in the meantime.
    """
    facts = await _facts(conn, task)
    cause = cause_of_loss(ran_s=facts.ran_s, timeout_s=timeout_s, boot_gone=facts.boot_gone)
    told = Told(task.turn_id, task.trace_id) if task.turn_id and task.started_attempt == task.attempt else None
    news = await _end(conn, outbox, task, told, ending=Ending(cause, LOSSES[cause]), facts=facts)
    log.warning("a task lost its runner", extra={"task": task.id, "cause": cause, "state": news.task.state})
    return news


LOSSES: Final[dict[TaskErrorClass, str]] = {
    "restart": "popagent was restarted while this ran.",
    "runner-lost": "The process that ran this was gone.",
    "stale": "This had run for much longer than a task may, and nobody had ended it.",
}


async def end(conn: Connection, outbox: Outbox, task: LeasedTask, told: Told, ending: Ending) -> News:
    """Write how the attempt ended and what follows from it, in the caller's transaction; raises LeaseLostError."""
    return await _end(conn, outbox, task, told, ending=ending, facts=await _facts(conn, task))


async def _facts(conn: Connection, task: LeasedTask) -> Facts:
    facts = await store.FACTS.first(conn, task.id, task.attempt, task.owner)
    if facts is None:
        raise LeaseLostError(f"task {task.id}: attempt {task.attempt} was taken over or has ended")
    return facts


async def _end(
    conn: Connection, outbox: Outbox, task: LeasedTask, told: Told | None, *, ending: Ending, facts: Facts
) -> News:
    attempt = Attempt(
        attempt=facts.attempt,
        max_attempts=facts.max_attempts,
        source=facts.source,
        workflow=facts.workflow,
        acted=facts.acted,
        is_remediation=facts.is_remediation,
        has_remediation=facts.has_remediation,
        stop_requested=facts.stop_requested,
    )
    verdict = judge(attempt, ending.cause)
    state = after(attempt.state, verdict.move)
    if state == "cancelled":
        ending = Ending("cancelled", None, ending.output)
    ended = await store.END.first(conn, task.id, task.attempt, task.owner, state, *_columns(verdict, ending))
    if ended is None:
        raise LeaseLostError(f"task {task.id}: attempt {task.attempt} was taken over")
    news = _news(ended, told, ending)
    await outbox.add(conn, news)
    if verdict.files_remediation and ended.state == "failed":
        await _file_remediation(conn, outbox, task, ending, facts=facts)
    if ended.state != "queued":
        await free_parent(conn, outbox, ended)
    return news


def _columns(verdict: Verdict, ending: Ending) -> tuple[object, ...]:
    output = storable(ending.output, OUTPUT_CHARACTERS)
    return (
        verdict.delay_s,
        int(verdict.raises_ceiling),
        ending.cause,
        ending.error,
        verdict.explanation,
        output,
        excerpt(output, EXCERPT_CHARACTERS),
        verdict.alone,
    )


def _news(task: TaskSummary, told: Told | None, ending: Ending) -> News:
    """Return the event of an end; an attempt whose start nobody was told has no end either."""
    if told is None:
        return TaskChanged(aggregate_id=task.id, version=task.version, task=task)
    outcomes: dict[str, TaskOutcome] = {
        "completed": "completed",
        "cancelled": "cancelled",
        "dead-letter": "dead-letter",
    }
    return TaskStopped(
        aggregate_id=task.id,
        version=task.version,
        task=task,
        attempt=task.attempt_count,
        turn_id=told.turn_id,
        trace_id=told.trace_id,
        outcome=outcomes.get(task.state, "failed"),
        error_class=ending.cause,
        error=ending.error,
        excerpt=excerpt(storable(ending.output, OUTPUT_CHARACTERS), EVENT_EXCERPT_CHARACTERS),
    )


async def _file_remediation(
    conn: Connection, outbox: Outbox, task: LeasedTask, ending: Ending, *, facts: Facts
) -> None:
    """File the one remediation of a failed task, with the default model of the moment."""
    new = making.new_task(
        task_id=new_id(),
        prompt=await remediation_prompt(conn, task, ending.cause or "unknown", ending.error),
        workspace_id=task.workspace_id,
        now=facts.now,
        max_attempts=DEFAULT_ATTEMPTS,
        source=task.source,
        session_id=task.session_id,
        remediates=task.id,
        title=remediation_title(task.title),
    )
    if await store.INSERT.all(conn, *making.arrays_of([new])):
        log.info("a task failed and gets a remediation", extra={"task": task.id, "remediation": new.task.id})
        outbox.wake()


async def free_parent(conn: Connection, outbox: Outbox, remediation: TaskSummary) -> None:
    """Send the failed parent of a remediation that has ended back for one more attempt.

    However the remediation ended: a failed task never waits for a person while attempts remain.
    """
    if remediation.remediates is None:
        return
    parent = await store.LOCK_PARENT.first(conn, remediation.remediates)
    if parent is None:
        return
    if parent.attempt_count < parent.max_attempts:
        after(parent.state, "retry")
        parent = await store.RETRY.one(conn, parent.id)
    else:
        after(parent.state, "bury")
        cause = parent.last_error_class or "unknown"
        parent = await store.BURY.one(conn, parent.id, exhausted(parent.attempt_count, parent.max_attempts, cause))
    await outbox.add(conn, TaskChanged(aggregate_id=parent.id, version=parent.version, task=parent))
