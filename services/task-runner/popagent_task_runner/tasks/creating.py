"""New tasks that come at the same time are stored together: one statement and one commit for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_task_runner.tasks import store
from popagent_task_runner.tasks.making import NewTask, arrays_of

# In one statement.
MOST_TASKS: Final = 50
MOST_CHARACTERS: Final = 1_000_000
# How long the database's time is known from when it was last told; it is asked for again by whoever counts the queue.
KNOWN_S: Final = 2.0


class DatabaseClock:
    """What the database's clock shows, by our monotonic one since it was last told: a round trip late, never early."""

    def __init__(self) -> None:
        self._told: tuple[datetime, float] | None = None
        self._last: datetime | None = None

    def told(self, now: datetime) -> None:
        """Take what the database just said."""
        self._told = now, time.monotonic()

    def now(self) -> datetime | None:
        """Return the time, no earlier than the one before; None when it was told too long ago."""
        if self._told is None:
            return None
        told, at = self._told
        passed_s = time.monotonic() - at
        if passed_s > KNOWN_S:
            return None
        now = told + timedelta(seconds=passed_s)
        # A round trip that took longer than the last one; a clock that was set back is believed.
        if self._last is not None and timedelta(0) < self._last - now < timedelta(seconds=1):
            now = self._last
        self._last = now
        return now


class Creations:
    """Stores new tasks; those that come while others are being stored wait for these and go together."""

    def __init__(self, pool: Pool) -> None:
        self.clock = DatabaseClock()
        self._pool = pool
        self._waiting: list[tuple[NewTask, asyncio.Future[bool]]] = []
        self._storing: asyncio.Task[None] | None = None

    async def store(self, new: NewTask) -> bool:
        """Store the task and its event, and return True; False when its id is there already or its workspace closed.

        Who gives up waiting may find it stored all the same. Wake the relay after it.
        """
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((new, stored))
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_all(), name="store new tasks")
        return await stored

    async def _store_all(self) -> None:
        while self._waiting:
            batch = self._take()
            try:
                await self._store(batch)
            except Exception as error:  # noqa: BLE001 (each of their callers is told)
                for _, stored in batch:
                    if not stored.done():
                        stored.set_exception(error)

    def _take(self) -> list[tuple[NewTask, asyncio.Future[bool]]]:
        """Take what goes together: no id twice, of which one would not be told that it is there already."""
        batch: list[tuple[NewTask, asyncio.Future[bool]]] = []
        left: list[tuple[NewTask, asyncio.Future[bool]]] = []
        ids: set[str] = set()
        characters = 0
        for new, stored in self._waiting:
            if stored.done():
                continue  # nobody waits for it any more
            fits = len(batch) < MOST_TASKS and (not batch or characters + len(new.prompt) <= MOST_CHARACTERS)
            if not fits or new.task.id in ids:
                left.append((new, stored))
                continue
            batch.append((new, stored))
            ids.add(new.task.id)
            characters += len(new.prompt)
        self._waiting = left
        return batch

    async def _store(self, batch: Sequence[tuple[NewTask, asyncio.Future[bool]]]) -> None:
        if not batch:
            return
        try:
            async with self._pool.acquire() as conn:
                created = set(await store.INSERT.all(conn, *arrays_of([new for new, _ in batch])))
        except AppError:
            raise
        except Exception:
            if len(batch) == 1:
                raise
            # One of them is what the database does not take: the others must not fall with it.
            for each in batch:
                await self._store_alone(each)
            return
        for new, stored in batch:
            if not stored.done():
                stored.set_result(new.task.id in created)

    async def _store_alone(self, each: tuple[NewTask, asyncio.Future[bool]]) -> None:
        try:
            await self._store([each])
        except Exception as error:  # noqa: BLE001 (its own caller is told)
            if not each[1].done():
                each[1].set_exception(error)
