"""The observability service: it hears everything, stores it in a PostgreSQL of its own, and answers questions."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_host import Service, ServiceDefinition
from popagent_observability import health, retention, taking, traces
from popagent_observability.deps import ObservabilityDeps
from popagent_observability.settings import ObservabilitySettings
from popagent_observability.storing import Storing

# Batches of up to half a MB wait in memory while the store is away; the others stay in the stream.
BATCHES_AT_ONCE: Final = 16


def all_handlers() -> Handlers[ObservabilityDeps]:
    """Return everything this service takes and answers; the host adds its health."""
    handlers: Handlers[ObservabilityDeps] = Handlers()
    for part in (taking.handlers, traces.handlers, health.handlers):
        handlers.include(part)
    return handlers


async def build(service: Service[ObservabilitySettings]) -> None:
    """Take telemetry and events, answer questions, and keep the store small."""
    settings, pool = service.settings, service.pool

    async def keep_small() -> None:
        await retention.keep_small(pool, settings.retention_days, settings.max_mb * retention.MB)

    service.pulse.every(retention.PERIOD_S, "trace retention", keep_small)
    deps = ObservabilityDeps(settings, pool, service.bus, Storing(pool))
    service.serve(all_handlers(), deps, max_workers=BATCHES_AT_ONCE)


SERVICE: Final = ServiceDefinition("observability", ObservabilitySettings, build)
