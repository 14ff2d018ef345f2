"""Writes down what hooks did, in the order in which they did it; a database that is away is waited for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_kit.errors import UnavailableError
from popagent_runs.hooks.rows import HookRun
from popagent_telemetry import metrics

log = logging.getLogger(__name__)

EVERY_S: Final = 5.0
MOST_WAITING: Final = 2_000
# A turn waits no longer than this for what it writes down.
WAIT_S: Final = 1.0
AWAY_S: Final = 3.0
BATCH: Final = 200

DROPPED: Final = metrics.counter(
    "popagent_hook_runs_dropped_total", "Runs of hooks that are missing in the audit of their session"
)


class HookAudit:
    """The audit of one process. What was added is stored at once, or by a chore when the database is back.

    `insert` stores a HookRun, its fields in their order, and passes over one that is stored.
    """

    def __init__(self, pool: Pool, insert: Query[None]) -> None:
        self._pool = pool
        self._insert = insert
        self._waiting: list[HookRun] = []
        self._writing = asyncio.Lock()
        self._away_until = 0.0

    def add(self, runs: Sequence[HookRun]) -> None:
        """Take runs; of too many that wait the oldest are dropped and counted."""
        self._waiting += runs
        surplus = len(self._waiting) - MOST_WAITING
        if surplus > 0:
            log.error("runs of hooks are missing in the audit", extra={"runs": surplus})
            DROPPED.inc(surplus)
            del self._waiting[:surplus]

    async def write(self) -> None:
        """Store what waits; without a database it waits on, and what the database refuses is dropped and counted.

        A database that was away a moment ago is not waited for again, since turns would be slowed by it.
        """
        async with self._writing:
            most = BATCH
            while time.monotonic() >= self._away_until and (batch := self._waiting[:most]):
                try:
                    async with self._pool.acquire(WAIT_S) as conn:
                        await self._insert.run_many(conn, [tuple(run.model_dump().values()) for run in batch])
                except UnavailableError as error:
                    self._away_until = time.monotonic() + AWAY_S
                    log.warning("runs of hooks wait for the database", extra={"reason": error.message})
                    return
                except Exception:
                    if len(batch) > 1:
                        most = 1  # so that one of them takes no other with it
                        continue
                    log.exception("runs of hooks are missing in the audit", extra={"runs": 1})
                    DROPPED.inc()
                # `add` may have dropped some of them meanwhile.
                written = {run.id for run in batch}
                self._waiting = [run for run in self._waiting if run.id not in written]

    async def close(self) -> None:
        """Store what waits, for the last time; what cannot be is counted."""
        self._away_until = 0.0
        await self.write()
        if self._waiting:
            log.error("runs of hooks are missing in the audit", extra={"runs": len(self._waiting)})
            DROPPED.inc(len(self._waiting))
