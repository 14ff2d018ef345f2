"""The one timer of a process: a single query each second asks every table whether something waits."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from popagent_db.pool import Pool
from popagent_kit.errors import UnavailableError

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
JITTER: Final = 0.2  # share of the period, so that replicas do not ask in step


@dataclass
class Watch:
    """A condition that is asked about each `period_s`, or in every period of the pulse where that is None."""

    probe: str
    wake: Callable[[], None]
    period_s: float | None
    due_at: float = 0.0

    def resize(self, period_s: float | None) -> None:
        """Ask about so often from now on."""
        self.period_s = period_s
        self.due_at = min(self.due_at, asyncio.get_running_loop().time() + (period_s or 0.0))


@dataclass
class _Chore:
    name: str
    period_s: float
    run: Callable[[], Awaitable[object]]
    due_at: float
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Pulse:
    """Covers every wake-up that was lost; wake-ups themselves are faster and come from elsewhere."""

    def __init__(self, pool: Pool, *, period_s: float = PERIOD_S) -> None:
        self._pool = pool
        self._period_s = period_s
        self._watches: list[Watch] = []
        self._chores: list[_Chore] = []
        self._loop: asyncio.Task[None] | None = None
        self._silent = False

    def watch(self, probe: str, wake: Callable[[], None], *, period_s: float | None = None) -> Watch:
        """Call `wake` in every period in which the SQL condition `probe` is true; cheap and indexed, please."""
        self._watches.append(Watch(probe, wake, period_s))
        return self._watches[-1]

    def every(self, period_s: float, name: str, run: Callable[[], Awaitable[object]]) -> None:
        """Run a chore about each `period_s`, first after a random share of it; never twice at once."""
        due_at = asyncio.get_running_loop().time() + random.uniform(0, period_s)  # noqa: S311 (spreads load)
        self._chores.append(_Chore(name, period_s, run, due_at))

    def start(self) -> None:
        """Begin; what is watched later is included."""
        self._loop = asyncio.create_task(self._beat(), name="pulse")

    async def stop(self) -> None:
        """End, and wait for chores that are under way."""
        tasks = [chore.task for chore in self._chores if chore.task is not None]
        if self._loop is not None:
            self._loop.cancel()
            tasks.append(self._loop)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            period_s = min([self._period_s, *(each.period_s for each in self._watches if each.period_s is not None)])
            await asyncio.sleep(period_s * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 (spreads load)
            try:
                await self._ask(period_s)
            except Exception as error:  # noqa: BLE001 (whatever is wrong, the pulse must beat when it is over)
                self._note_silence(error)
            self._start_chores()

    async def _ask(self, period_s: float) -> None:
        now = asyncio.get_running_loop().time()
        due = [each for each in self._watches if now >= each.due_at]
        if not due:
            return
        # The conditions are constants of the code that watches.
        sql = "select " + ", ".join(f"({each.probe})" for each in due)
        async with self._pool.acquire() as connection:
            row = await connection.fetchrow(sql)
        self._silent = False
        assert row is not None
        for waiting, each in zip(row, due, strict=True):
            # The next beat may come a little early.
            each.due_at = now + (each.period_s or self._period_s) - JITTER * period_s
            if waiting:
                each.wake()

    def _note_silence(self, error: Exception) -> None:
        if not self._silent:
            unexpected = None if isinstance(error, UnavailableError) else error
            reason = f"{type(error).__name__}: {error}"
            log.warning("rows are not watched at the moment", exc_info=unexpected, extra={"reason": reason})
        self._silent = True

    def _start_chores(self) -> None:
        now = asyncio.get_running_loop().time()
        for chore in self._chores:
            if now >= chore.due_at and (chore.task is None or chore.task.done()):
                chore.due_at = now + chore.period_s
                chore.task = asyncio.create_task(self._run(chore), name=f"chore {chore.name}")

    async def _run(self, chore: _Chore) -> None:
        try:
            await chore.run()
        except UnavailableError as error:
            log.info("chore put off", extra={"chore": chore.name, "reason": str(error)})
        except Exception:  # a chore that fails must not end the timer of all others
            log.exception("chore failed", extra={"chore": chore.name})
