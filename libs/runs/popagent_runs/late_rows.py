"""Rows that no run may wait for: stored at once, or by a chore when a database that was away is back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from prometheus_client import Counter

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_kit.errors import UnavailableError

log = logging.getLogger(__name__)

EVERY_S: Final = 5.0
MOST_WAITING: Final = 2_000
# A run waits no longer than this for what it writes down.
WAIT_S: Final = 1.0
AWAY_S: Final = 3.0
BATCH: Final = 200


class Row(Protocol):
    """What is stored once, by its id."""

    @property
    def id(self) -> str:
        """The id by which the database knows that it has the row."""
        ...


R = TypeVar("R", bound=Row)


class LateRows(Generic[R]):
    """Rows of one process for one table, stored in the order in which they were added.

    `insert` stores the values of a row and passes over one that is stored.
    """

    def __init__(
        self, pool: Pool, insert: Query[None], values: Callable[[R], Sequence[object]], *, what: str, dropped: Counter
    ) -> None:
        self._pool = pool
        self._insert = insert
        self._values = values
        self._what = what
        self._dropped = dropped
        self._waiting: list[R] = []
        self._writing = asyncio.Lock()
        self._away_until = 0.0

    def add(self, rows: Sequence[R]) -> None:
        """Take rows; of too many that wait the oldest are dropped and counted."""
        self._waiting += rows
        surplus = len(self._waiting) - MOST_WAITING
        if surplus > 0:
            self._missing(surplus)
            del self._waiting[:surplus]

    async def write(self) -> None:
        """Store what waits; without a database it waits on, and what the database refuses is dropped and counted.

        A database that was away a moment ago is not waited for again, since runs would be slowed by it.
        """
        async with self._writing:
            most = BATCH
            while time.monotonic() >= self._away_until and (batch := self._waiting[:most]):
                try:
                    async with self._pool.acquire(WAIT_S) as conn:
                        await self._insert.run_many(conn, [self._values(row) for row in batch])
                except UnavailableError as error:
                    self._away_until = time.monotonic() + AWAY_S
                    log.warning("%s wait for the database", self._what, extra={"reason": error.message})
                    return
                except Exception:
                    if len(batch) > 1:
                        most = 1  # so that one of them takes no other with it
                        continue
                    log.exception("%s: one cannot be stored", self._what)
                    self._missing(1)
                # `add` may have dropped some of them meanwhile.
                written = {row.id for row in batch}
                self._waiting = [row for row in self._waiting if row.id not in written]

    async def close(self) -> None:
        """Store what waits, for the last time; what cannot be is counted."""
        self._away_until = 0.0
        await self.write()
        if self._waiting:
            self._missing(len(self._waiting))

    def _missing(self, count: int) -> None:
        log.error("%s are missing in the database", self._what, extra={"rows": count})
        self._dropped.inc(count)
