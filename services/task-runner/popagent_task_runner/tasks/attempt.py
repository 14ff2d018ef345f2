"""Carry out one attempt of a task: tell its start, run the executor, end it when it must, store how it ended."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from typing import Final

from popagent_kit.errors import AppError, UnavailableError
from popagent_kit.ids import new_id
from popagent_kit.text import excerpt
from popagent_proto.task_runner.tasks import TaskInterrupted, TaskStarted, TaskStopped
from popagent_rows.leased import Lease, LeaseLostError
from popagent_task_runner.tasks import store
from popagent_task_runner.tasks.causes import cause_of, sentence_of
from popagent_task_runner.tasks.deps import RunDeps
from popagent_task_runner.tasks.ending import LOSSES, Ending, Told, end_attempt
from popagent_task_runner.tasks.executor import Finished, Note, Stop, StopReason
from popagent_task_runner.tasks.prompts import attempt_prompt
from popagent_task_runner.tasks.rows import LeasedTask
from popagent_task_runner.tasks.transcript import Transcript
from popagent_telemetry import current_trace_id, metrics, span

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
INTENT_CHARACTERS: Final = 8_000
BLANK: Final = "It ended without an answer."

INTERRUPTED: Final = metrics.counter(
    "popagent_tasks_interrupted_total", "Attempts that did not end within the time they get after they were told to"
)

Executing = MutableMapping[str, asyncio.Task[Finished]]
"""The executors of this process by task; one that outlives its attempt stays here until it ends."""


class Run:
    """What the executor is given; see TaskRun."""

    def __init__(self, deps: RunDeps, lease: Lease[LeasedTask], transcript: Transcript, told: Told) -> None:
        self.task = lease.row
        self.prompt = lease.row.prompt
        self.turn_id = told.turn_id
        self.trace_id = told.trace_id
        self.stop = Stop()
        self._deps = deps
        self._lease = lease
        self._transcript = transcript

    @property
    def held(self) -> bool:
        """Whether nobody else can have the task."""
        return self._lease.held

    def check(self) -> None:
        """Raise LeaseLostError from the local deadline on."""
        self._lease.check()

    async def intend(self, step: int, call_id: str, tool: str, arguments: str) -> None:
        """Store the row of a call that may have an effect, under the fence."""
        bounded = excerpt(arguments, INTENT_CHARACTERS).replace("\x00", "")
        async with self._deps.pool.acquire() as conn:
            await self._lease.run(conn, store.INTENT, step, call_id, tool, bounded)

    def note(self, note: Note) -> None:
        """Add a record to the transcript."""
        self._transcript.note(note)

    def said(self, delta: Note) -> None:
        """Let the text of a running step grow."""
        self._transcript.said(delta)


class TaskAttempt:
    """One claimed attempt, from its start to its stored end."""

    def __init__(self, deps: RunDeps, lease: Lease[LeasedTask], executing: Executing, *, timeout_s: float) -> None:
        self._deps = deps
        self._lease = lease
        self._task = lease.row
        self._executing = executing
        self._timeout_s = timeout_s
        self._told = Told(new_id(), None)

    async def carry_out(self) -> None:
        """Return when the attempt has ended and its executor too, so that its slot is free only then.

        Raises:
            LeaseLostError: Another runner has the task; nothing more was written.
        """
        task = self._task
        # Of a lease that was lost, and of which the executor does not end: no two of one task run here at once.
        if (earlier := self._executing.get(task.id)) is not None:
            await asyncio.wait({earlier})
        attributes: dict[str, str | int] = {
            "popagent.task.id": task.id,
            "popagent.attempt": task.attempt,
            "popagent.turn.id": self._told.turn_id,
        }
        with span("task.attempt", attributes) as current:
            self._told = Told(self._told.turn_id, current_trace_id())
            transcript = Transcript(
                self._deps.pool, self._lease, text_every_s=self._deps.text_every_s, grew=self._deps.grew
            )
            run = Run(self._deps, self._lease, transcript, self._told)
            try:
                await self._start(run, transcript)
                ending = await self._executed(run)
                if ending is None:
                    return
                # From here on the fence alone decides: no late beat and no stop of the process cuts off the end.
                self._lease.over()
                current.set_attribute("popagent.task.cause", ending.cause or "none")
                if ending.cause is not None:
                    words = f"Attempt {task.attempt} ended ({ending.cause}). {ending.error or ''}".rstrip()
                    transcript.note(Note("status", words))
                await transcript.settle()
            finally:
                await transcript.close()
            news = await end_attempt(self._deps, self._lease, self._told, ending)
            if isinstance(news, TaskStopped):
                self._deps.observe(news)

    async def _start(self, run: Run, transcript: Transcript) -> None:
        """Store and tell that the attempt begins; waits for PostgreSQL as long as the lease is ours."""
        task = self._task
        while True:
            self._lease.check()
            try:
                async with self._deps.outbox.transaction() as conn:
                    started = await store.START.first(
                        conn, task.id, task.attempt, task.owner, self._told.turn_id, self._told.trace_id
                    )
                    if started is None:
                        raise LeaseLostError(f"task {task.id}: attempt {task.attempt} was taken over")
                    event = TaskStarted(
                        aggregate_id=task.id,
                        version=started.version,
                        task=started,
                        attempt=task.attempt,
                        turn_id=self._told.turn_id,
                        trace_id=self._told.trace_id,
                    )
                    await self._deps.outbox.add(conn, event)
                    run.prompt = await attempt_prompt(conn, task)
                    await transcript.open(conn)
                self._deps.observe(event)
                return
            except UnavailableError as error:
                log.info("a task waits for the database", extra={"task": task.id, "reason": error.message})
                await asyncio.sleep(RETRY_S)

    async def _executed(self, run: Run) -> Ending | None:
        """Run the executor to its end; None when nothing may be written about it."""
        work = asyncio.create_task(self._deps.executor(run), name=f"task {self._task.id} executor")
        self._executing[self._task.id] = work
        work.add_done_callback(self._forget)
        reason = await self._first_reason(work)
        if reason is not None:
            run.stop.ask(reason)
            reason = await self._settled(run, work)
        if reason == "lost" or not work.done():
            return None
        return self._ending_of(work, reason)

    def _forget(self, work: asyncio.Task[Finished]) -> None:
        if not work.cancelled():
            work.exception()  # seen; of an attempt that is another runner's by now nobody reads it
        if self._executing.get(self._task.id) is work:
            del self._executing[self._task.id]

    async def _first_reason(self, work: asyncio.Task[Finished]) -> StopReason | None:
        """Wait for the executor, or for why it must end."""
        asked = asyncio.create_task(self._lease.stop.wait(), name=f"task {self._task.id} stop")
        try:
            await asyncio.wait({work, asked}, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return None
            return "cancelled" if asked.done() else "timeout"
        except asyncio.CancelledError:
            return self._cancelled(work)
        finally:
            asked.cancel()

    def _cancelled(self, work: asyncio.Task[Finished]) -> StopReason:
        """Return why this task of the event loop was cancelled, which is taken back: the executor is still to end."""
        reasons: dict[str, StopReason] = {"lost": "lost", "interrupted": "shutdown"}
        reason = reasons.get(self._lease.ending or "")
        if reason is None:
            work.cancel()
            raise asyncio.CancelledError
        if (current := asyncio.current_task()) is not None:
            current.uncancel()
        return reason

    async def _settled(self, run: Run, work: asyncio.Task[Finished]) -> StopReason:
        """Wait until the executor has ended, its slot taken; only a process that stops does not wait for ever."""
        half_s = self._deps.acknowledge_s / 2
        await self._wait(run, work, half_s)
        if not work.done():
            work.cancel()
            await self._wait(run, work, half_s)
        if not work.done():
            await self._say_interrupted(run)
        while not work.done() and run.stop.reason != "shutdown":
            work.cancel()
            await self._wait(run, work, self._deps.acknowledge_s)
        return run.stop.reason or "lost"

    async def _wait(self, run: Run, work: asyncio.Task[Finished], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not work.done() and (left := deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait({work}, timeout=left)
            except asyncio.CancelledError:
                run.stop.ask(self._cancelled(work))

    async def _say_interrupted(self, run: Run) -> None:
        """Show and tell, once, that the attempt does not end; not when it is another runner's by now."""
        task = self._task
        INTERRUPTED.inc()
        log.error("a task does not end", extra={"task": task.id, "attempt": task.attempt, "reason": run.stop.reason})
        if run.stop.reason == "lost":
            return
        run.note(Note("status", "This attempt was told to end and does not. It keeps its place."))
        try:
            async with self._deps.outbox.transaction() as conn:
                shown = await store.INTERRUPTED.first(conn, task.id, task.attempt, task.owner)
                if shown is not None:
                    event = TaskInterrupted(
                        aggregate_id=task.id,
                        version=shown.version,
                        task=shown,
                        attempt=task.attempt,
                        turn_id=self._told.turn_id,
                        trace_id=self._told.trace_id,
                    )
                    await self._deps.outbox.add(conn, event)
        except UnavailableError as error:
            log.warning("an interruption was not stored", extra={"task": task.id, "reason": error.message})
        except asyncio.CancelledError:
            run.stop.ask(self._cancelled(self._executing[task.id]))

    def _ending_of(self, work: asyncio.Task[Finished], reason: StopReason | None) -> Ending:
        """Return how the attempt ended; output counts whatever was asked meanwhile, an error only if nothing was."""
        error = None if work.cancelled() else work.exception()
        if not work.cancelled() and error is None:
            output = work.result().output
            return Ending(output=output) if output.strip() else Ending("unknown", BLANK)
        if reason == "timeout":
            return Ending("timeout", f"It took longer than {self._timeout_s:g} s.")
        if reason == "shutdown":
            return Ending("restart", LOSSES["restart"])
        if reason == "cancelled":
            return Ending("cancelled")
        if isinstance(error, AppError) and error.code == LeaseLostError.code:
            # The loop of agents has a class of its own for this, with the same code.
            raise LeaseLostError(error.message) from error
        if error is None:
            return Ending("unknown", "It was cut off from within.")
        log.warning("task failed", exc_info=error, extra={"task": self._task.id, "attempt": self._task.attempt})
        return Ending(cause_of(error), sentence_of(error))
