"""One service process as its `build` sees it: what it may use, and what it hands over to be run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from popagent_bus import Bus, Handlers
from popagent_db.pool import Pool
from popagent_host.health import Check, Health
from popagent_host.settings import ServiceSettings
from popagent_kit import tasks
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse

S = TypeVar("S", bound=ServiceSettings)
log = logging.getLogger(__name__)


@dataclass
class Served:
    """Handlers with what they are given."""

    handlers: Handlers[Any]
    deps: Any
    max_workers: int


@dataclass
class Service(Generic[S]):
    """Everything is open and running when `build` gets it; nothing is served before `build` returned."""

    name: str
    settings: S
    pool: Pool
    bus: Bus
    outbox: Outbox
    pulse: Pulse
    holder: Holder
    health: Health
    closing: AsyncExitStack
    failed: asyncio.Future[None]
    served: Served | None = field(default=None)

    def serve(self, handlers: Handlers[Any], deps: Any, *, max_workers: int = 64) -> None:
        """Answer and hear with these handlers once `build` has returned."""
        self.served = Served(handlers, deps, max_workers)

    def on_stop(self, stop: Callable[[], Awaitable[object]]) -> None:
        """Call `stop` when requests are no longer taken and before the outbox, the bus and the pool end.

        Running work is finished here. Latest first.
        """
        self.closing.push_async_callback(guarded, stop)

    def check(self, name: str, check: Check, *, decisive: bool = True) -> None:
        """Add a health check beside `postgres` and `nats`."""
        self.health.add(name, check, decisive=decisive)

    def run_beside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` until the stop; its end or its error ends the process, so that the supervisor starts it anew."""
        task = asyncio.create_task(work, name=name)

        def ended(done: asyncio.Task[None]) -> None:
            if not done.cancelled() and not self.failed.done():
                error = done.exception() or RuntimeError(f"{name} ended by itself")
                self.failed.set_exception(error)

        task.add_done_callback(ended)
        self.closing.push_async_callback(tasks.end, task)


async def guarded(step: Callable[[], Awaitable[object]]) -> None:
    """Run one step of the stop; an error in it is logged and does not keep the next from running."""
    try:
        await step()
    except Exception:
        log.exception("a step of the stop failed")
