"""What is asked of every peer, in its own environment: nothing of popagent can be imported here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

ONE_CALLER = 1_000
CALLERS = 20
BY_CALLERS = 3_000
DRAINED = 1_500
OPEN_LOOP_PER_S = 20
OPEN_LOOP_S = 5

Enqueue = Callable[[float], Awaitable[object]]
Found = dict[str, tuple[float, str]]


class Work:
    """What a job does, which is nothing, and when it began; its argument is when it was given."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.waits_s: list[float] = []

    def note(self, given_at: float) -> None:
        now = time.perf_counter()
        self.starts.append(now)
        self.waits_s.append(now - given_at)


async def enqueued(enqueue: Enqueue, count: int) -> None:
    for _ in range(count):
        await enqueue(time.perf_counter())


async def rates(enqueue: Enqueue) -> Found:
    """Return how fast jobs are given while nobody works."""
    await enqueued(enqueue, 100)
    started = time.perf_counter()
    await enqueued(enqueue, ONE_CALLER)
    one = ONE_CALLER / (time.perf_counter() - started)
    started = time.perf_counter()
    await asyncio.gather(*(enqueued(enqueue, BY_CALLERS // CALLERS) for _ in range(CALLERS)))
    many = BY_CALLERS / (time.perf_counter() - started)
    return {"enqueue, one caller": (one, "jobs/s"), f"enqueue, {CALLERS} callers": (many, "jobs/s")}


async def worked(enqueue: Enqueue, work: Work, run: Callable[[], Awaitable[object]]) -> Found:
    """Return how fast a worker gets through what waits, and how long what comes then waits."""
    await enqueued(enqueue, DRAINED)
    worker = asyncio.ensure_future(run())
    try:
        await _until(worker, lambda: len(work.starts) >= DRAINED)
        drain = (DRAINED - 1) / (work.starts[-1] - work.starts[0])
        work.starts, work.waits_s = [], []
        started = time.perf_counter()
        for number in range(OPEN_LOOP_PER_S * OPEN_LOOP_S):
            await asyncio.sleep(max(0.0, started + number / OPEN_LOOP_PER_S - time.perf_counter()))
            await enqueue(time.perf_counter())
        await _until(worker, lambda: len(work.waits_s) >= OPEN_LOOP_PER_S * OPEN_LOOP_S)
    finally:
        worker.cancel()
        await asyncio.wait({worker}, timeout=10)
    waits_ms = sorted(wait * 1_000 for wait in work.waits_s)
    return {
        "drain": (drain, "jobs/s"),
        "enqueue to start, p50": (waits_ms[len(waits_ms) // 2], "ms"),
        "enqueue to start, p99": (waits_ms[int(0.99 * len(waits_ms))], "ms"),
    }


async def _until(worker: asyncio.Future[object], condition: Callable[[], bool]) -> None:
    while not condition():
        if worker.done():
            raise RuntimeError(f"the worker ended: {worker}")
        await asyncio.sleep(0.05)
