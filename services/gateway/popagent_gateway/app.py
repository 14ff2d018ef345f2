"""The gateway service, put together."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from popagent_gateway.server import DoorServer
from popagent_gateway.settings import GatewaySettings
from popagent_gateway.wiring import Gateway
from popagent_host import Service, ServiceDefinition

log = logging.getLogger(__name__)


async def build(service: Service[GatewaySettings]) -> None:
    """Open the door. At the stop it closes first: streams end with a word, requests get the drain time."""
    gateway = Gateway(service.settings, service.bus, service.pool, service.health.view)
    await gateway.start()
    service.on_stop(gateway.stop)
    server = DoorServer(gateway.app, service.settings, gateway.closing)
    serving = asyncio.create_task(server.serve_until_asked(), name="http server")
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        listening.cancel()
        await serving  # raises why it does not listen
    log.info("http://%s:%d is open, %s key", service.settings.host, server.port, _with(service.settings))

    async def close() -> None:
        server.ask_to_exit()
        await asyncio.wait([serving])

    def ended(task: asyncio.Task[None]) -> None:
        if not server.should_exit and not service.failed.done():
            service.failed.set_exception(task.exception() or RuntimeError("the HTTP server ended by itself"))

    serving.add_done_callback(ended)
    service.on_stop(close)


def _with(settings: GatewaySettings) -> str:
    return "without a" if settings.api_key is None else "with a"


SERVICE: Final = ServiceDefinition("gateway", GatewaySettings, build)
