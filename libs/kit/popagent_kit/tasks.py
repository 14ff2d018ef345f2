"""Ending tasks for certain."""

from __future__ import annotations

import asyncio
from typing import Any, Final

AGAIN_S: Final = 0.2


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
