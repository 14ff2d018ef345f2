"""What the runner asks chat: its limits, and whether there is what a new task names."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from popagent_bus import Bus
from popagent_proto.chat.settings import GetAgentRuntime
from popagent_proto.chat.work import CheckWork
from popagent_task_runner.tasks.deps import Limits

# What was there so recently is taken to be there: many tasks are made at once.
FRESH_S: Final = 5.0
MOST_KNOWN: Final = 1_000


class ChatLimits:
    """The limits of the settings page."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def __call__(self) -> Limits:
        """Return them as they are now."""
        settings = await self._bus.ask(GetAgentRuntime())
        return Limits(
            settings.background_concurrency, settings.task_timeout_ms / 1000, settings.background_poll_ms / 1000
        )


@dataclass(frozen=True)
class _Answer:
    workspace_id: str
    asked_at: float


class WorkChecks:
    """Asks chat once for all who name the same at the same time; a refusal is never remembered."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[CheckWork, _Answer] = {}
        self._asking: dict[CheckWork, asyncio.Task[str]] = {}

    async def __call__(self, workspace_id: str | None, agent_id: str | None, model: str | None) -> str:
        """Return the workspace's id, as chat says now or said some seconds ago."""
        named = CheckWork(workspace_id=workspace_id, agent_id=agent_id, model=model)
        known = self._known.get(named)
        if known is not None and time.monotonic() - known.asked_at < FRESH_S:
            return known.workspace_id
        asking = self._asking.get(named)
        if asking is None:
            asking = self._asking[named] = asyncio.create_task(self._ask(named), name="check what a task names")
            asking.add_done_callback(lambda task: self._answered(named, task))
        # Who gives up must not take the answer from the others.
        return await asyncio.shield(asking)

    async def _ask(self, named: CheckWork) -> str:
        asked_at = time.monotonic()
        place = await self._bus.ask(named)
        self._known.pop(named, None)
        self._known[named] = _Answer(place.workspace_id, asked_at)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return place.workspace_id

    def _answered(self, named: CheckWork, task: asyncio.Task[str]) -> None:
        del self._asking[named]
        if not task.cancelled():
            task.exception()  # those who wait have it; perhaps nobody does any more
