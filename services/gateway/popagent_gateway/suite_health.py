"""Asks all services how they are; models, search and anything but the two databases never decide."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from popagent_bus import Bus
from popagent_kit.errors import AppError
from popagent_proto.common import HEALTH_QUERIES, HealthView
from popagent_proto.http import SuiteHealthView

ANSWER_TIMEOUT_S: Final = 1.0
# Check of the suite → (service that knows, its check).
DECISIVE: Final = {
    "postgres": ("chat", "postgres"),
    "observability-postgres": ("observability", "postgres"),
}
OK: Final = "ok"


class SuiteHealth:
    """Callers at the same time share one round of questions, so that probes cannot flood the bus."""

    def __init__(self, bus: Bus, own: Callable[[], Awaitable[HealthView]]) -> None:
        self._bus = bus
        self._own = own
        self._round: asyncio.Task[SuiteHealthView] | None = None

    async def ask_all(self) -> SuiteHealthView:
        """Return within little more than a second, whoever does not answer."""
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self._ask_all())
        return await asyncio.shield(self._round)

    async def _ask_all(self) -> SuiteHealthView:
        views = await asyncio.gather(*(self._ask(service) for service in HEALTH_QUERIES))
        by_service = {view.service: view for view in views}
        checks = {
            name: by_service[service].checks.get(check, f"{service} does not answer")
            for name, (service, check) in DECISIVE.items()
        }
        return SuiteHealthView(ready=all(state == OK for state in checks.values()), checks=checks, services=views)

    async def _ask(self, service: str) -> HealthView:
        try:
            if service == "gateway":
                return await self._own()
            return await self._bus.ask(HEALTH_QUERIES[service](), timeout_s=ANSWER_TIMEOUT_S, patience_s=0)
        except AppError as error:
            return HealthView(service=service, version="", ready=False, checks={"bus": error.message})
