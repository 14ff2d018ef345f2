"""Puts the door together: what stands around the API, from the outside in, and what runs beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_gateway.api import make_api
from popagent_gateway.audit import Audited, AuditLog
from popagent_gateway.bodies import Bodies
from popagent_gateway.door import Door, key_id
from popagent_gateway.headers import SecurityHeaders
from popagent_gateway.observed import Observed
from popagent_gateway.routes.pages import BUILT
from popagent_gateway.settings import GatewaySettings
from popagent_gateway.streams.closing import Closing
from popagent_gateway.streams.event_hub import EventHub
from popagent_gateway.suite_health import SuiteHealth
from popagent_kit import tasks
from popagent_kit.settings import reveal
from popagent_proto.common import HealthView
from popagent_telemetry import register_secret


class Gateway:
    """One door; make it inside the running event loop."""

    def __init__(
        self,
        settings: GatewaySettings,
        bus: Bus,
        pool: Pool,
        own_health: Callable[[], Awaitable[HealthView]],
        pages: Path = BUILT,
    ) -> None:
        register_secret(reveal(settings.api_key), "api key")
        self.closing = Closing()
        self.audit_log = AuditLog(pool, settings.audit_days)
        self.hub = EventHub(bus, SuiteHealth(bus, own_health))
        self.api: FastAPI = make_api(pages)
        self.api.state.bus = bus
        self.api.state.own_ports = frozenset({settings.health_port} - {0})
        self.api.state.suite = self.hub.suite
        self.api.state.hub = self.hub
        self.api.state.closing = self.closing
        # From the inside out: what passed the door is noted in the log of changes, also when its body is refused;
        # a refusal at the door is counted and carries the headers.
        inside = Audited(Bodies(self.api), self.audit_log, key_id(settings))
        self.app: ASGIApp = Observed(SecurityHeaders(Door(inside, settings)))
        self._writer: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen to events and write the log of changes."""
        await self.hub.start()
        self._writer = tasks.lasting(self.audit_log.run, "log of changes")

    async def stop(self) -> None:
        """Stop what `start` began; the log of changes is written out. The server has stopped before."""
        await self.hub.stop()
        await tasks.end(self._writer)
        await self.audit_log.flush()
