"""Composes one service process: log, telemetry, pool, bus, outbox relay, health port, and the order of its stop."""

from popagent_host.health import Check, Health
from popagent_host.run import ServiceDefinition, live, run
from popagent_host.service import Service
from popagent_host.settings import ServiceSettings

__all__ = ["Check", "Health", "Service", "ServiceDefinition", "ServiceSettings", "live", "run"]
