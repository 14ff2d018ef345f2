"""Asks all services how they are; models, search and anything but the two databases never decide."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from popagent_bus import Bus
from popagent_kit.errors import AppError
from popagent_kit.remedies import Remedy, is_trouble, remedy_for_check, remedy_for_service
from popagent_proto.common import HEALTH_QUERIES, HealthView
from popagent_proto.http import HealthProblem, SuiteHealthView

ANSWER_TIMEOUT_S: Final = 1.0
# Check of the suite → (service that knows, its check).
DECISIVE: Final = {
    "postgres": ("chat", "postgres"),
    "observability-postgres": ("observability", "postgres"),
}
# Shown beside them, and never counted.
SHOWN: Final = {"model": ("chat", "model"), "search": ("chat", "search")}
OK: Final = "ok"
# Who does not answer says so under this name.
ABSENT: Final = "bus"


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
        return summed_up(await asyncio.gather(*(self._ask(service) for service in HEALTH_QUERIES)))

    async def _ask(self, service: str) -> HealthView:
        try:
            if service == "gateway":
                return await self._own()
            return await self._bus.ask(HEALTH_QUERIES[service](), timeout_s=ANSWER_TIMEOUT_S, patience_s=0)
        except AppError as error:
            return HealthView(service=service, version="", ready=False, checks={ABSENT: error.message})


def summed_up(views: Sequence[HealthView]) -> SuiteHealthView:
    """Return the health of the suite; what is not well stands in `problems` with what to do."""
    by_service = {view.service: view for view in views}
    checks = {
        name: by_service[service].checks.get(check, f"{service} does not answer")
        for name, (service, check) in (DECISIVE | SHOWN).items()
    }
    details = {
        name: by_service[service].details[check]
        for name, (service, check) in SHOWN.items()
        if check in by_service[service].details
    }
    return SuiteHealthView(
        ready=all(checks[name] == OK for name in DECISIVE),
        checks=checks,
        services=list(views),
        details=details,
        problems=list(_problems(views)),
    )


def _problems(views: Sequence[HealthView]) -> Iterator[HealthProblem]:
    """Yield each trouble once, whoever noticed it; the deciding ones first, then absent services, then the rest."""
    noticed: dict[str, dict[str, str]] = {}
    absent = []
    for view in views:
        if ABSENT in view.checks and view.checks[ABSENT] != OK:
            absent.append(_problem(view.service, {view.service: view.checks[ABSENT]}, remedy_for_service(view.service)))
            continue
        for check, state in view.checks.items():
            if is_trouble(state):
                noticed.setdefault(_suite_name(view.service, check), {})[view.service] = state
    found = {name: _problem(name, services, _remedy(name, services)) for name, services in noticed.items()}
    yield from (found.pop(name) for name in DECISIVE if name in found)
    yield from absent
    yield from found.values()


def _suite_name(service: str, check: str) -> str:
    """Return the suite's name of a service's check: observability has a PostgreSQL of its own."""
    return next((name for name, place in DECISIVE.items() if place == (service, check)), check)


def _remedy(name: str, services: Mapping[str, str]) -> Remedy:
    # A service tells of itself, starting or stopping, under this name.
    return remedy_for_service(next(iter(services))) if name == "service" else remedy_for_check(name)


def _problem(name: str, services: Mapping[str, str], remedy: Remedy) -> HealthProblem:
    return HealthProblem(
        name=name,
        services=list(services),
        reason=next(iter(services.values())),
        still_works=remedy.still_works,
        fix=remedy.fix,
        decisive=name in DECISIVE or any(service == name for service, _ in DECISIVE.values()),
    )
