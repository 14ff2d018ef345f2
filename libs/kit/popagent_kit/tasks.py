"""Loops that go on whatever happens in them, and ending tasks for certain."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from popagent_kit.errors import AppError

AGAIN_S: Final = 0.2
# Between an error in a lasting loop and its next try.
PAUSE_S: Final = 1.0

log = logging.getLogger(__name__)


def lasting(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[None]:
    """Run `work()` as a task and, whenever it fails, log why and run it anew a second later; its return is the end.

    For loops that nobody waits for: an error nobody thought of would otherwise end them in silence.
    """

    async def again_and_again() -> None:
        while True:
            try:
                await work()
                break
            except AppError as error:
                log.warning("%s begins again: %s", name, error.message)
            except Exception:
                log.exception("%s failed by a defect of ours and begins again", name)
            if task.cancelling():  # the error came out of the cleaning up after a cancellation
                break
            await asyncio.sleep(PAUSE_S)

    task = asyncio.get_running_loop().create_task(again_and_again(), name=name)
    return task


async def end(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel the tasks and return when all have ended; None is passed over, their results and errors are dropped.

    Cancels again and again: `asyncio.wait_for` of Python 3.11 swallows a cancellation that meets a result, and so may
    libraries that use it; a loop around it would then run for ever.
    """
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
