"""One heartbeat for all leases of a worker, on a connection of its own so that a busy pool cannot starve it.

It runs in the worker's event loop on purpose: a loop that is blocked longer than a lease stops beating, is seen by
the sweepers of others, and writes nothing more once it runs again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Generic

import asyncpg

from popagent_db.pool import Pool, translated
from popagent_kit.errors import AppError
from popagent_rows.leased import Holder, Lease, LeasedRows, Row

log = logging.getLogger(__name__)


class Heartbeat(Generic[Row]):
    """Prolongs leases, and tells their work when it should stop or has lost its row."""

    def __init__(
        self, rows: LeasedRows[Row], pool: Pool, holder: Holder, lose: Callable[[Lease[Row], str], None]
    ) -> None:
        self._rows = rows
        self._pool = pool
        self._holder = holder
        self._lose = lose
        self._leases: dict[tuple[str, int], Lease[Row]] = {}
        self._deadlines: dict[tuple[str, int], asyncio.TimerHandle] = {}
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._silent = False

    def start(self) -> None:
        """Begin to beat."""
        self._task = asyncio.create_task(self._run(), name=f"{self._rows.table} heartbeat")

    async def stop(self) -> None:
        """Stop beating; leases that are still here run out."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for timer in self._deadlines.values():
            timer.cancel()
        self._disconnect()

    def look_now(self) -> None:
        """Beat at once, which also reads requests to stop."""
        self._now.set()

    def keep(self, lease: Lease[Row]) -> None:
        """Beat for `lease` from now on."""
        key = (lease.row.id, lease.row.attempt)
        self._leases[key] = lease
        self._watch_deadline(key, lease)

    def holds(self, row: Row) -> bool:
        """Whether the lease of this attempt is kept here and its work goes on, whatever the database's clock says."""
        lease = self._leases.get((row.id, row.attempt))
        return lease is not None and lease.held

    def forget(self, lease: Lease[Row]) -> None:
        """Beat no more for `lease`."""
        key = (lease.row.id, lease.row.attempt)
        self._leases.pop(key, None)
        if timer := self._deadlines.pop(key, None):
            timer.cancel()

    def _watch_deadline(self, key: tuple[str, int], lease: Lease[Row]) -> None:
        delay_s = lease.deadline - time.monotonic()
        if delay_s <= 0:
            self._deadlines.pop(key, None)
            self._lose(lease, "no heartbeat succeeded before the local deadline")
            return
        self._deadlines[key] = asyncio.get_running_loop().call_later(delay_s, self._watch_deadline, key, lease)

    async def _run(self) -> None:
        pause_s = self._rows.beat_s
        while True:
            try:
                async with asyncio.timeout(pause_s):
                    await self._now.wait()
            except TimeoutError:
                pass  # the usual case: it is time to beat
            self._now.clear()
            # After a failure sooner than usual, so that a short absence of PostgreSQL costs no lease.
            pause_s = self._rows.beat_s if await self._beat(list(self._leases.values())) else self._rows.beat_s / 4

    async def _beat(self, leases: Iterable[Lease[Row]]) -> bool:
        by_key = {(lease.row.id, lease.row.attempt): lease for lease in leases}
        if not by_key:
            return True
        asked_at = time.monotonic()
        try:
            async with translated(self._connection), asyncio.timeout(max(self._rows.beat_s, 0.5)):
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._pool.connect()
                answers = await self._rows.beat(self._connection, self._holder, [x.row for x in by_key.values()])
        except Exception as error:  # whatever raises, the leases of this worker need the next beat
            if not self._silent:
                unexpected = None if isinstance(error, AppError) else error
                reason = f"{type(error).__name__}: {error}"
                log.warning(
                    "heartbeat failed", exc_info=unexpected, extra={"table": self._rows.table, "reason": reason}
                )
            self._silent = True
            self._disconnect()
            return False
        self._silent = False
        for answer in answers:
            lease = by_key[answer.id, answer.attempt]
            if answer.beaten:
                lease.prolong(asked_at)
            elif not answer.ours and (answer.id, answer.attempt) in self._leases:
                self._lose(lease, "another attempt has the row, or it was ended")
            if answer.stop_requested:
                lease.stop.set()
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None
