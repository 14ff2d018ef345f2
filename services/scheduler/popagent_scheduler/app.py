"""The scheduler service: starts, migrates, reports health and metrics; it offers nothing else yet."""

from __future__ import annotations

from typing import Final

from popagent_host import Host, ServiceDefinition, ServiceSettings


async def build(host: Host, settings: ServiceSettings) -> None:
    """Add nothing to what every service has."""


SERVICE: Final = ServiceDefinition("scheduler", ServiceSettings, build)
