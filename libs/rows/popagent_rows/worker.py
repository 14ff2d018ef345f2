"""A worker claims due rows into free slots, runs their work under a lease, and sweeps what others left behind."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic

from popagent_db.pool import Connection, Pool
from popagent_kit.errors import UnavailableError
from popagent_rows.heartbeat import Heartbeat
from popagent_rows.leased import End, Holder, Lease, LeasedRows, LeaseLostError, Outcome, Requeue, Row, Take, Verdict
from popagent_rows.pulse import Pulse, Watch
from popagent_telemetry import metrics

log = logging.getLogger(__name__)

CLAIMED: Final = metrics.counter("popagent_rows_claimed_total", "Leased rows that this process started", ["table"])
LOST: Final = metrics.counter("popagent_leases_lost_total", "Leases that ended before their work did", ["table"])
EXPIRED: Final = metrics.counter("popagent_leases_expired_total", "Leases of lost holders, found here", ["table"])

SWEEP_BATCH: Final = 100
SETTLE_RETRY_S: Final = 0.2
DRAIN_S: Final = 30.0
INTERRUPT_S: Final = 5.0

Handler = Callable[[Lease[Row]], Awaitable[Outcome]]
"""Does the work. It returns how the row ends, or None when it has ended the row itself through the fence
(after `lease.over()`).

It is cancelled when the lease is lost (`lease.ending == "lost"`: write nothing) or the process stops
("interrupted": the lease is still held for a few seconds, write the end).
"""
Failed = Callable[[Lease[Row], Exception], Outcome]
"""Decides what becomes of a row whose handler raised."""
Expired = Callable[[Connection, Row], Awaitable[Verdict]]
"""Decides, in the transaction that locks it, what becomes of a row whose lease ran out.

None: it wrote the end itself.
"""


class PolicyError(Exception):
    """The policy for an expired row failed; the log says why."""


class Slot(Generic[Row]):
    """A free place that was reserved, for a row that is inserted running instead of being claimed."""

    def __init__(self, worker: Worker[Row]) -> None:
        self._worker = worker
        self._asked_at = time.monotonic()
        self._open = True

    def start(self, row: Row) -> None:
        """Run `row`, which was committed as running, of attempt 1, with this worker's holder, after the reservation."""
        assert self._open, "a slot starts one row"
        self._open = False
        self._worker.adopt(row, self._asked_at)

    def free(self) -> None:
        """Give the place back unless it was used."""
        if self._open:
            self._open = False
            self._worker.give_back()


class Worker(Generic[Row]):
    """Runs rows of one table, `slots` at a time; wake it after an enqueue, the pulse covers wakes that were lost."""

    def __init__(
        self,
        rows: LeasedRows[Row],
        pool: Pool,
        holder: Holder,
        *,
        handler: Handler[Row],
        failed: Failed[Row],
        expired: Expired[Row],
        taken: Handler[Row] | None = None,
        slots: int,
    ) -> None:
        """`taken` is the handler of rows for which `expired` answered Take; those use no slot."""
        self.rows = rows
        self.holder = holder
        self._pool = pool
        self._handler = handler
        self._failed = failed
        self._expired = expired
        self._taken = taken or handler
        self._slots = self._free = slots
        self._work: dict[Lease[Row], asyncio.Task[None]] = {}
        self._heartbeat: Heartbeat[Row] = Heartbeat(rows, pool, holder, self._lose)
        self._due = asyncio.Event()
        self._overdue = asyncio.Event()
        self._maybe_more = False
        self._stopping = False
        self._loops: list[asyncio.Task[None]] = []
        self._watch: Watch | None = None

    @property
    def running(self) -> int:
        """How many rows are worked on."""
        return len(self._work)

    def start(self, pulse: Pulse) -> None:
        """Begin to claim, beat and sweep."""
        self._heartbeat.start()
        name = self.rows.table
        self._loops = [
            asyncio.create_task(self._loop(self._due, self._claim), name=f"{name} claim"),
            asyncio.create_task(self._loop(self._overdue, self._sweep), name=f"{name} sweep"),
        ]
        self._watch = pulse.watch(self.rows.probe_due, self.wake)
        pulse.watch(self.rows.probe_expired, self._overdue.set)
        self.wake()
        self._overdue.set()

    def wake(self) -> None:
        """Look for due rows now."""
        self._due.set()

    def look_every(self, period_s: float | None) -> None:
        """Look so often for due rows of which nothing told, or with each beat of the pulse; call it after `start`."""
        assert self._watch is not None, "the worker was started"
        self._watch.resize(period_s)

    def resize(self, slots: int) -> None:
        """Have `slots` places from now on; what runs in one too many runs to its end."""
        grown = slots - self._slots
        self._slots = slots
        self._free += grown
        if grown > 0:
            self.wake()

    def look_for_stops(self) -> None:
        """Read requests to stop now, instead of at the next beat."""
        self._heartbeat.look_now()

    def reserve(self) -> Slot[Row] | None:
        """Reserve a place for a row that the caller is about to insert running; None when all are taken."""
        if self._stopping or self._free <= 0:
            return None
        self._free -= 1
        return Slot(self)

    async def stop(self, drain_s: float = DRAIN_S, interrupt_s: float = INTERRUPT_S) -> None:
        """Claim nothing more, wait `drain_s` for what runs, interrupt the rest, and only then stop beating."""
        self._stopping = True
        # A claim on its way is waited for: cut off, it might have committed rows that nobody runs.
        self._due.set()
        self._overdue.set()
        _, late = await asyncio.wait(self._loops, timeout=interrupt_s) if self._loops else ((), ())
        for loop in late:
            loop.cancel()
        await self._wait_for_work(drain_s)
        for lease, task in list(self._work.items()):
            if lease.ending is None:
                lease.ending = "interrupted"
                task.cancel()
        await self._wait_for_work(interrupt_s)
        if self._work:
            log.warning("work did not end when it was interrupted", extra={"rows": [x.row.id for x in self._work]})
        await self._heartbeat.stop()

    async def _wait_for_work(self, timeout_s: float) -> None:
        if self._work:
            await asyncio.wait(list(self._work.values()), timeout=timeout_s)

    def adopt(self, row: Row, asked_at: float) -> None:
        """Run a row that this worker's holder has since `asked_at`, in a place that is already counted."""
        self._begin(Lease(self.rows, row, asked_at), self._handler, in_slot=True)

    def give_back(self) -> None:
        """Count one place more."""
        self._free += 1
        if self._maybe_more and not self._stopping:
            self._due.set()

    async def _loop(self, signal: asyncio.Event, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await signal.wait()
            signal.clear()
            if self._stopping:
                return
            try:
                await step()
            except UnavailableError as error:
                log.info("rows wait for the database", extra={"table": self.rows.table, "reason": str(error)})
            except Exception:  # the loop must outlive a defect of one step; the pulse calls again
                log.exception("claiming or sweeping failed", extra={"table": self.rows.table})

    async def _claim(self) -> None:
        while self._free > 0:
            wanted = self._free
            self._free -= wanted  # a reservation in the meantime must not take what is being filled
            rows: list[Row] = []
            asked_at = time.monotonic()
            try:
                async with self._pool.acquire() as connection:
                    rows = await self.rows.claim(connection, self.holder, wanted)
            finally:
                self._free += wanted - len(rows)
            for row in rows:
                self.adopt(row, asked_at)
            if len(rows) < wanted:
                self._maybe_more = False
                return
        self._maybe_more = True

    async def _sweep(self) -> None:
        more = True
        while more:
            taken: list[Row] = []
            asked_at = time.monotonic()
            requeued = False
            settled = 0
            async with self._pool.transaction() as connection:
                rows = await self.rows.expired.all(connection, SWEEP_BATCH)
                for row in rows:
                    # When the machine slept, every lease ran out while its work goes on: the next beat prolongs ours.
                    if self._heartbeat.holds(row):
                        continue
                    try:
                        verdict = await self._judge(connection, row)
                    except PolicyError:
                        continue
                    settled += 1
                    requeued = requeued or isinstance(verdict, Requeue)
                    if isinstance(verdict, Take):
                        taken.append(await self.rows.take(connection, row, self.holder))
            for row in taken:
                self._begin(Lease(self.rows, row, asked_at), self._taken, in_slot=False)
            if requeued:
                self.wake()
            # Rows whose policy failed are found again, first: without progress the rest waits for the next pulse.
            more = len(rows) == SWEEP_BATCH and settled > 0

    async def _judge(self, connection: Connection, row: Row) -> Verdict:
        """Apply the policy to one row.

        Raises:
            PolicyError: It failed; the row stays expired and does not hold up the others.
        """
        try:
            async with connection.transaction():
                verdict = await self._expired(connection, row)
                if isinstance(verdict, End | Requeue):
                    await self.rows.settle(connection, row, verdict)
        except Exception as error:
            if connection.is_closed():
                raise
            log.exception("the policy for an expired lease failed", extra={"table": self.rows.table, "row": row.id})
            raise PolicyError from error
        EXPIRED.labels(self.rows.table).inc()
        log.info("expired lease", extra={"table": self.rows.table, "row": row.id, "verdict": type(verdict).__name__})
        return verdict

    def _begin(self, lease: Lease[Row], handler: Handler[Row], *, in_slot: bool) -> None:
        CLAIMED.labels(self.rows.table).inc()
        task = asyncio.create_task(self._run(lease, handler), name=f"{self.rows.table} {lease.row.id}")
        self._work[lease] = task
        task.add_done_callback(lambda _: self._finish(lease, in_slot=in_slot))
        self._heartbeat.keep(lease)  # last: a lease that is over already is lost here, with its task

    def _finish(self, lease: Lease[Row], *, in_slot: bool) -> None:
        self._heartbeat.forget(lease)
        self._work.pop(lease, None)
        if in_slot:
            self.give_back()

    def _lose(self, lease: Lease[Row], reason: str) -> None:
        task = self._work.get(lease)
        if task is None or lease.ending in ("lost", "over"):
            return
        log.warning("lease lost", extra={"table": self.rows.table, "row": lease.row.id, "reason": reason})
        LOST.labels(self.rows.table).inc()
        lease.ending = "lost"
        task.cancel()

    async def _run(self, lease: Lease[Row], handler: Handler[Row]) -> None:
        try:
            outcome = await handler(lease)
        except asyncio.CancelledError:
            if lease.ending == "interrupted":
                await self._let_go(lease)
            elif lease.ending is None:
                raise
            return
        except LeaseLostError as error:
            log.warning("work ended without its lease", extra={"row": lease.row.id, "reason": str(error)})
            return
        except Exception as error:  # noqa: BLE001 (`failed` decides; that is the edge of the work)
            outcome = self._failed(lease, error)
        if outcome is not None:
            await self._settle(lease, outcome)

    async def _settle(self, lease: Lease[Row], outcome: End | Requeue) -> None:
        """Write the outcome, again and again while PostgreSQL is away, until the lease ends."""
        while True:
            try:
                lease.check()
                async with self._pool.acquire() as connection:
                    await self.rows.settle(connection, lease.row, outcome)
            except UnavailableError:
                await asyncio.sleep(SETTLE_RETRY_S)
            except LeaseLostError as error:
                log.warning("an outcome came too late", extra={"row": lease.row.id, "reason": str(error)})
                return
            else:
                break
        if isinstance(outcome, Requeue) and outcome.delay_s == 0:
            self.wake()

    async def _let_go(self, lease: Lease[Row]) -> None:
        """End the lease of interrupted work that did not end its row, so that a sweeper need not wait for it."""
        try:
            async with self._pool.acquire(timeout_s=1) as connection:
                await lease.run(connection, self.rows.let_go)
        except (UnavailableError, LeaseLostError) as error:
            log.info("an interrupted row keeps its lease", extra={"row": lease.row.id, "reason": str(error)})
