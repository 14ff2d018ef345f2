"""Hooks hear of a session that was deleted, behind the back of whoever deleted it."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from popagent_runs.hooks.running import RunHooks

log = logging.getLogger(__name__)

# What is told when the process stops gets so long to be told.
STOP_S: Final = 5.0
# Who deletes many sessions waits while so many are being told of.
AT_ONCE: Final = 8


class SessionEnds:
    """What this process is telling."""

    def __init__(self) -> None:
        self._telling: set[asyncio.Task[None]] = set()

    async def room(self) -> None:
        """Return when fewer than eight sessions are being told of."""
        while len(self._telling) >= AT_ONCE:
            await asyncio.wait(self._telling, return_when=asyncio.FIRST_COMPLETED)

    def tell(self, hooks: RunHooks) -> None:
        """Begin to tell."""
        task = asyncio.create_task(hooks.session_ends(), name="session end hooks")
        self._telling.add(task)
        task.add_done_callback(self._told)

    def _told(self, task: asyncio.Task[None]) -> None:
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("hooks were not told of a deleted session", exc_info=error)

    async def close(self) -> None:
        """Wait a moment for what is being told; the rest is given up and said in the log."""
        if not self._telling:
            return
        _, late = await asyncio.wait(self._telling, timeout=STOP_S)
        for task in late:
            log.warning("a hook was not told to its end of a deleted session")
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
