"""Slots for models that bear few calls at a time, shared by every process of the suite.

A slot is a session advisory lock (model, n) on the one connection a process keeps for it: a killed process frees its
slots with its connection. Only models with a limit take one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol

from popagent_kit.errors import ConfigurationError, RateLimitedError

log = logging.getLogger(__name__)

FIRST_POLL_S: Final = 0.02
LONGEST_POLL_S: Final = 0.25
RECONNECT_PAUSE_S: Final = 5.0
MOST_SLOTS: Final = 64


class LockConnection(Protocol):
    """What a database connection must offer; asyncpg's does."""

    async def fetchval(self, query: str, *args: Any) -> Any:
        """Return the first value of the first row."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...

    def is_closed(self) -> bool:
        """Tell whether it is closed."""
        ...


Connect = Callable[[], Awaitable[LockConnection]]


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `calls` at a time in all processes together, for models that match `pattern` (`*` as in file names)."""

    pattern: str
    calls: int


def parse_limits(text: str) -> tuple[Limit, ...]:
    """Return the limits written as `pattern=n, pattern=n`.

    Raises:
        ConfigurationError: A part is not of that form, or n is not within 1 to 64.
    """
    limits = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        pattern, _, calls = part.rpartition("=")
        if not pattern or not calls.strip().isascii() or not calls.strip().isdigit():
            raise ConfigurationError(f"POPAGENT_MODEL_LIMITS: {part!r} is not of the form pattern=n.")
        if not 1 <= int(calls) <= MOST_SLOTS:
            raise ConfigurationError(f"POPAGENT_MODEL_LIMITS: {part!r}: a limit is a number from 1 to {MOST_SLOTS}.")
        limits.append(Limit(pattern.strip(), int(calls)))
    return tuple(limits)


class Slots:
    """The advisory locks held by this process: at most one connection, used by one statement at a time."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: LockConnection | None = None
        self._alone = asyncio.Lock()
        self._failed_at = -RECONNECT_PAUSE_S
        self.held: set[tuple[int, int]] = set()

    async def take(self, model: str, calls: int) -> tuple[int, int] | None:
        """Return a slot, None when all are taken. Without a database the limit holds within this process alone."""
        key = lock_key(model)
        async with self._alone:
            # A session may take its own lock again, so that only slots we do not hold are tried.
            free = [number for number in range(calls) if (key, number) not in self.held]
            random.shuffle(free)
            for number in free:
                if await self._lock(key, number):
                    self.held.add((key, number))
                    return key, number
        return None

    async def give_back(self, slot: tuple[int, int]) -> None:
        """Free a slot."""
        async with self._alone:
            self.held.discard(slot)
            if self._connection is None or self._connection.is_closed():
                return
            try:
                await self._connection.fetchval("select pg_advisory_unlock($1::int, $2::int)", *slot)
            except Exception:
                log.warning("a model slot could not be given back; its connection is dropped", exc_info=True)
                await self._drop()

    async def close(self) -> None:
        """Close the connection, which frees every slot."""
        async with self._alone:
            await self._drop()

    async def _lock(self, key: int, number: int) -> bool:
        for _ in range(2):
            connection = await self._ready()
            if connection is None:
                return True
            try:
                return bool(await connection.fetchval("select pg_try_advisory_lock($1::int, $2::int)", key, number))
            except Exception:
                log.warning("the connection that holds model slots broke; it is made again", exc_info=True)
                await self._drop()
        return True

    async def _ready(self) -> LockConnection | None:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        if time.monotonic() - self._failed_at < RECONNECT_PAUSE_S:
            return None
        try:
            self._connection = await self._connect()
            for slot in self.held:
                await self._connection.fetchval("select pg_try_advisory_lock($1::int, $2::int)", *slot)
        except Exception:
            self._failed_at = time.monotonic()
            log.warning("no database for model slots; limits hold within this process only", exc_info=True)
            await self._drop()
            return None
        return self._connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close()
            except Exception:
                log.warning("a connection did not close cleanly", exc_info=True)


class Line:
    """Those who wait for one model in this process: chat before background, else first come, first served."""

    def __init__(self) -> None:
        self._chat: deque[asyncio.Event] = deque()
        self._background: deque[asyncio.Event] = deque()

    def __len__(self) -> int:
        return len(self._chat) + len(self._background)

    def join(self, *, background: bool) -> asyncio.Event:
        """Queue up; the event is set when this is the first."""
        turn = asyncio.Event()
        (self._background if background else self._chat).append(turn)
        self._call_first()
        return turn

    def leave(self, turn: asyncio.Event) -> None:
        """Leave, from whichever place."""
        for queue in (self._chat, self._background):
            if turn in queue:
                queue.remove(turn)
        self._call_first()

    def _call_first(self) -> None:
        first = next(iter(self._chat or self._background), None)
        for turn in (*self._chat, *self._background):
            if turn is first:
                turn.set()
            else:
                turn.clear()


class Admission:
    """Grants slots by `limits`; the first that matches counts. A queue is bounded per process and in time."""

    def __init__(
        self,
        limits: tuple[Limit, ...],
        connect: Connect,
        *,
        most_waiting: int = 32,
        longest_wait_s: float = 120.0,
    ) -> None:
        self.limits = limits
        self.most_waiting = most_waiting
        self.longest_wait_s = longest_wait_s
        self._slots = Slots(connect)
        self._lines: dict[str, Line] = {}
        self._giving_back: set[asyncio.Future[None]] = set()

    def limit(self, model: str) -> int | None:
        """Return how many calls the model bears at a time, None when it has no limit."""
        return next((limit.calls for limit in self.limits if fnmatchcase(model, limit.pattern)), None)

    @asynccontextmanager
    async def slot(self, model: str, *, background: bool = False) -> AsyncIterator[float]:
        """Wait for a slot and hold it; gives the seconds waited.

        Raises:
            RateLimitedError: The queue is full, or nothing became free in time; carries `retry_after_s`.
        """
        calls = self.limit(model)
        if calls is None:
            yield 0.0
            return
        started = time.monotonic()
        slot = await self._queue(model, calls, background=background)
        try:
            yield time.monotonic() - started
        finally:
            # Also a cancelled call gives its slot back, to the end.
            await asyncio.shield(self._slots.give_back(slot))

    async def close(self) -> None:
        """Give every slot back."""
        await self._slots.close()

    async def _queue(self, model: str, calls: int, *, background: bool) -> tuple[int, int]:
        line = self._lines.setdefault(model, Line())
        if len(line) >= self.most_waiting:
            raise RateLimitedError(
                f"Too many requests wait for the model “{model}”. Try again in a moment.", retry_after_s=10.0
            )
        turn = line.join(background=background)
        try:
            async with asyncio.timeout(self.longest_wait_s):
                return await self._first_free(turn, model, calls)
        except TimeoutError as error:
            raise RateLimitedError(
                f"The model “{model}” was busy for {self.longest_wait_s:g} s. Try again in a moment.",
                retry_after_s=30.0,
            ) from error
        finally:
            line.leave(turn)

    async def _first_free(self, turn: asyncio.Event, model: str, calls: int) -> tuple[int, int]:
        """Ask for a slot whenever it is our turn, more rarely the longer it takes."""
        pause_s = FIRST_POLL_S
        while True:
            await turn.wait()
            slot = await self._take_whole(model, calls)
            if slot is not None:
                return slot
            await asyncio.sleep(random.uniform(0.5, 1.0) * pause_s)  # noqa: S311 (spreads processes, guards nothing)
            pause_s = min(LONGEST_POLL_S, pause_s * 1.5)

    async def _take_whole(self, model: str, calls: int) -> tuple[int, int] | None:
        """Take a slot; one that was granted while we were cancelled is given back."""
        taking = asyncio.ensure_future(self._slots.take(model, calls))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._return_unwanted)
            raise

    def _return_unwanted(self, taken: asyncio.Future[tuple[int, int] | None]) -> None:
        slot = None if taken.cancelled() or taken.exception() else taken.result()
        if slot is not None:
            task = asyncio.ensure_future(self._slots.give_back(slot))
            self._giving_back.add(task)
            task.add_done_callback(self._giving_back.discard)


def lock_key(model: str) -> int:
    """Return the model's half of the lock, as PostgreSQL's signed 32 bits."""
    return zlib.crc32(f"popagent-model:{model}".encode()) - 2**31
