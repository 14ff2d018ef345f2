"""Runs that are due become tasks: the task-runner is asked until it has answered, and makes one task however often."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from popagent_kit.errors import AppError
from popagent_kit.text import excerpt
from popagent_proto.scheduler import RunOutcome
from popagent_proto.task_runner.tasks import CreateTask, CreateTaskBody, ScheduleBusyError
from popagent_scheduler import store
from popagent_scheduler.deps import SchedulerDeps
from popagent_scheduler.planning import tell
from popagent_scheduler.store import DueRun

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
# Longer than an answer may take.
HELD_S: Final = 30.0
LONGEST_WAIT_S: Final = 60.0
NOTE_LENGTH: Final = 1_000


async def hand_over(deps: SchedulerDeps) -> bool:
    """Make tasks of the runs that are due; true when there may be more."""
    async with deps.pool.acquire() as conn:
        taken = await store.TAKE.all(conn, AT_ONCE, HELD_S)
    await asyncio.gather(*(_hand_over(deps, run) for run in taken))
    return len(taken) == AT_ONCE


async def _hand_over(deps: SchedulerDeps, run: DueRun) -> None:
    try:
        await deps.bus.ask(_command(run))
    except ScheduleBusyError as busy:
        await _settle(deps, run, "skipped", busy.message)
    except AppError as error:
        if error.retryable or error.http_status >= 500:
            await _put_off(deps, run, error)
        else:
            log.warning("no task for a schedule", extra={"schedule": run.schedule_id, "reason": error.message})
            await _settle(deps, run, "refused", error.message)
    else:
        await _settle(deps, run, "started", "")


def _command(run: DueRun) -> CreateTask:
    return CreateTask(
        command_id=run.task_id,
        body=CreateTaskBody(
            prompt=run.prompt,
            workspace_id=run.workspace_id,
            agent_id=run.agent_id,
            model=run.model,
            max_attempts=run.max_attempts,
        ),
        source=run.source,
        schedule_id=run.schedule_id,
        unless_scheduled=run.skip_if_running and not run.asked,
    )


async def _settle(deps: SchedulerDeps, run: DueRun, outcome: RunOutcome, note: str) -> None:
    async with deps.outbox.transaction() as conn:
        # The schedule before its runs, as everybody locks them.
        if await store.TOUCH.run(conn, run.schedule_id):
            await store.SETTLE.run(conn, run.schedule_id, run.planned_at, outcome, excerpt(note, NOTE_LENGTH))
            await tell(deps, conn, run.schedule_id)


async def _put_off(deps: SchedulerDeps, run: DueRun, error: AppError) -> None:
    wait_s = error.retry_after_s or min(LONGEST_WAIT_S, 2.0 ** min(run.tries, 6))
    log.info("a task of a schedule waits", extra={"schedule": run.schedule_id, "reason": error.message})
    async with deps.pool.acquire() as conn:
        note = excerpt(error.message, NOTE_LENGTH)
        await store.PUT_OFF.run(conn, run.schedule_id, run.planned_at, wait_s, note)
