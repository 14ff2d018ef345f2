"""The tasks that this process runs, and those that others left behind."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Final

from popagent_bus import Bus
from popagent_db.pool import Connection
from popagent_kit import tasks
from popagent_kit.errors import AppError, UnavailableError
from popagent_proto import matrix
from popagent_proto.task_runner.tasks import TaskStopped
from popagent_rows.leased import Holder, Lease, Outcome, Requeue, Verdict
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Worker
from popagent_task_runner.tasks import store
from popagent_task_runner.tasks.attempt import TaskAttempt
from popagent_task_runner.tasks.deps import Limits, RunDeps
from popagent_task_runner.tasks.ending import end_lost
from popagent_task_runner.tasks.executor import Finished
from popagent_task_runner.tasks.rows import TASKS, LeasedTask, TaskRows

log = logging.getLogger(__name__)

WAKE: Final = matrix.wake_subject("task-runner", "tasks")
WAKE_FOR_STOPS: Final = matrix.wake_subject("task-runner", "task-stops")
GATHER_S: Final = 0.003
AGAIN_S: Final = 0.3
PRESENT_EVERY_S: Final = 600.0
FORGET_EVERY_S: Final = 3_600.0
# Beside the time that executors get to end: storing what they ended with.
SETTLE_S: Final = 5.0


class Runners:
    """Every task-runner there is, this one too; a wake-up that is lost costs a second."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._gathering: set[str] = set()
        self._waking: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Make every runner look for due tasks."""
        self._soon(WAKE)

    def wake_for_stops(self) -> None:
        """Make every runner look at what it was asked to end."""
        self._soon(WAKE_FOR_STOPS)

    def _soon(self, subject: str) -> None:
        """Send one wake-up for all that come within moments: each costs every runner a query."""
        if subject not in self._gathering:
            self._gathering.add(subject)
            asyncio.get_running_loop().call_later(GATHER_S, self._send, subject)

    def _send(self, subject: str) -> None:
        self._gathering.discard(subject)
        task = asyncio.create_task(self._bus.wake(subject), name="wake tasks")
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)


class TaskWorker:
    """Claims tasks into slots, runs them, and ends those whose lease ran out; none before it knows its limits."""

    def __init__(self, deps: RunDeps, bus: Bus, holder: Holder, *, rows: TaskRows = TASKS) -> None:
        self._deps = deps
        self._bus = bus
        self.holder = holder
        self._limits: Limits | None = None
        self._learning: asyncio.Task[None] | None = None
        self._executing: dict[str, asyncio.Task[Finished]] = {}
        self._runners = Runners(bus)
        self._worker: Worker[LeasedTask] = Worker(
            rows, deps.pool, holder, handler=self._work, failed=_put_back, expired=self._lost, slots=0
        )

    @property
    def running(self) -> int:
        """How many tasks run here."""
        return self._worker.running

    async def start(self, pulse: Pulse) -> None:
        """Begin; a wake-up from any runner makes this one look for due tasks and for stops."""
        await self._be_present()
        self._worker.start(pulse)
        self._learning = tasks.lasting(self._learn_limits, "limits of tasks")
        pulse.every(self._deps.settings_every_s, "limits of tasks", self._refresh_limits)
        pulse.every(PRESENT_EVERY_S, "presence of this runner", self._be_present)
        pulse.every(FORGET_EVERY_S, "runners that are gone", self._forget)
        await self._bus.on_wake(WAKE, self._look)
        await self._bus.on_wake(WAKE_FOR_STOPS, self._look_for_stops)

    async def stop(self, grace_s: float) -> None:
        """Claim nothing more; what runs gets `grace_s`, is then told to end, and its end is stored.

        An executor that does not end keeps its row: nobody takes it before its lease is over.
        """
        await tasks.end(self._learning)
        await self._worker.stop(drain_s=grace_s, interrupt_s=self._deps.acknowledge_s + SETTLE_S)
        try:
            async with self._deps.pool.acquire(timeout_s=1) as conn:
                await store.ABSENT.run(conn, self.holder.owner)
        except UnavailableError as error:
            log.info("a runner leaves without a word", extra={"reason": error.message})

    def wake(self) -> None:
        """Make every runner look for due tasks, this one at once."""
        self._worker.wake()
        self._runners.wake()

    def wake_for_stops(self) -> None:
        """Make every runner look at what it was asked to end, this one at once."""
        self._worker.look_for_stops()
        self._runners.wake_for_stops()

    async def _look(self) -> None:
        self._worker.wake()

    async def _look_for_stops(self) -> None:
        self._worker.look_for_stops()

    async def _work(self, lease: Lease[LeasedTask]) -> Outcome:
        assert self._limits is not None, "there are no slots before the limits are known"
        await TaskAttempt(self._deps, lease, self._executing, timeout_s=self._limits.timeout_s).carry_out()
        if lease.row.remediates is not None or lease.row.source == "self-update":
            # Its parent, or another task with its key, may go now; once this one's place is free.
            asyncio.get_running_loop().call_soon(self._worker.wake)
        return None

    async def _lost(self, conn: Connection, task: LeasedTask) -> Verdict:
        # What still executes here is not recovered here.
        if task.id not in self._executing:
            timeout_s = math.inf if self._limits is None else self._limits.timeout_s
            news = await end_lost(conn, self._deps.outbox, task, timeout_s=timeout_s)
            if isinstance(news, TaskStopped):
                self._deps.observe(news)
        return None

    async def _learn_limits(self) -> None:
        """Ask until the limits are known: at a start of everything, their owner may be the later one."""
        told = False
        while self._limits is None:
            try:
                await self._read_limits()
            except AppError as error:
                if not told:
                    log.warning("no task is claimed before the settings are known: %s", error.message)
                told = True
                await asyncio.sleep(AGAIN_S)

    async def _refresh_limits(self) -> None:
        if self._limits is None:
            return
        try:
            await self._read_limits()
        except AppError as error:
            log.info("the limits stay as they were", extra={"reason": error.message})

    async def _read_limits(self) -> None:
        limits = await self._deps.limits()
        if self._limits is None or limits.slots != self._limits.slots:
            self._worker.resize(limits.slots)
        self._worker.look_every(limits.look_every_s)
        self._limits = limits

    async def _be_present(self) -> None:
        async with self._deps.pool.acquire() as conn:
            await store.PRESENT.run(conn, self.holder.owner, self.holder.boot_id)

    async def _forget(self) -> None:
        async with self._deps.pool.acquire() as conn:
            await store.FORGET_RUNNERS.run(conn)


def _put_back(lease: Lease[LeasedTask], error: Exception) -> Outcome:
    """What raises here is a defect of the runner, not of the task: its executor tells of failures by its ending."""
    log.error("an attempt could not be carried out", exc_info=error, extra={"task": lease.row.id})
    return Requeue(delay_s=5.0)
