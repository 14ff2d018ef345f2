"""Telemetry of one process: made at start, connected to its carrier when that is up, flushed at the end."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from popagent_telemetry.exporting import Export, Exporter, Outgoing, QueueingHandler, QueueingProcessor
from popagent_telemetry.tracing import make_provider, use_provider


@dataclass
class Telemetry:
    """The handle that the composition root holds; spans and logs queue from the moment it exists."""

    exporter: Exporter
    handler: QueueingHandler

    def start(self, export: Export) -> None:
        """Hand batches to `export` from now on; call it inside the running loop."""
        self.exporter.start(export)

    async def flush(self) -> None:
        """Hand on what is queued now."""
        await self.exporter.flush()

    async def stop(self) -> None:
        """Flush within two seconds and take no more logs."""
        logging.getLogger().removeHandler(self.handler)
        await self.exporter.stop()


def set_up(service: str, instance: str, export: Export | None = None) -> Telemetry:
    """Record spans and logs of this process under `service` and `instance` (one start of one process).

    Without `export` they wait, bounded, until `Telemetry.start`.
    """
    logging.getLogger("opentelemetry.attributes").setLevel(logging.ERROR)  # it warns of every text it shortens
    outgoing = Outgoing()
    use_provider(make_provider(QueueingProcessor(outgoing)))
    handler = QueueingHandler(outgoing)
    logging.getLogger().addHandler(handler)
    telemetry = Telemetry(Exporter(service, instance, outgoing), handler)
    if export is not None:
        telemetry.start(export)
    return telemetry
