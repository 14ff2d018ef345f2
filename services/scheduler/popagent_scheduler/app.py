"""The scheduler service: it writes down what is due, and hands it over as tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from popagent_bus import Handlers
from popagent_host import Service, ServiceDefinition, run
from popagent_kit.errors import UnavailableError
from popagent_scheduler import closing, handlers, store
from popagent_scheduler.deps import SchedulerDeps
from popagent_scheduler.handing_over import hand_over
from popagent_scheduler.planning import plan_due
from popagent_scheduler.settings import SchedulerSettings

log = logging.getLogger(__name__)

PRUNE_PERIOD_S: Final = 3_600.0


class Watch:
    """Does one kind of work whenever it is woken, until nothing is left."""

    def __init__(self, work: Callable[[], Awaitable[bool]], name: str) -> None:
        self._work = work
        self._name = name
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look now."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                while await self._work():
                    pass
            except UnavailableError as error:
                log.info("%s is put off", self._name, extra={"reason": error.message})  # the pulse wakes it again


async def build(service: Service[SchedulerSettings]) -> None:
    """Watch the times of every schedule; any number of schedulers may do so at once."""
    planner = Watch(lambda: plan_due(deps), "planning")
    giver = Watch(lambda: hand_over(deps), "handing over")
    deps = SchedulerDeps(service.pool, service.outbox, service.bus, service.settings.zone, giver.wake)
    service.pulse.watch(store.PROBE_DUE, planner.wake)
    service.pulse.watch(store.PROBE_HAND_OVER, giver.wake)
    service.run_beside(planner.run(), "planning")
    service.run_beside(giver.run(), "handing over")

    async def drop_old() -> None:
        async with service.pool.acquire() as conn:
            await store.DROP_OLD.run(conn, store.KEPT_RUNS)

    service.pulse.every(PRUNE_PERIOD_S, "schedule history", drop_old)
    service.serve(all_handlers(), deps)


def all_handlers() -> Handlers[SchedulerDeps]:
    """Return the handlers of every slice."""
    answering = Handlers[SchedulerDeps]()
    for part in (handlers, closing):
        answering.include(part.handlers)
    return answering


SERVICE: Final = ServiceDefinition("scheduler", SchedulerSettings, build)


def main() -> None:
    """Run the service until it is told to stop."""
    run(SERVICE)
