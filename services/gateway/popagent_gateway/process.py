"""The gateway as a process: the door in front, a service host behind it."""

from __future__ import annotations

import asyncio
from typing import Final

from popagent_gateway.server import DoorServer
from popagent_gateway.settings import GatewaySettings
from popagent_gateway.wiring import Gateway
from popagent_host import Service, ServiceDefinition, ServiceSettings


async def build(service: Service[ServiceSettings]) -> None:
    """Open the door; at the stop it closes first, and streams end with a word."""
    door = GatewaySettings.load()
    gateway = Gateway(door, service.bus, service.pool, service.health.view)
    server = DoorServer(gateway.app, door, gateway.closing)
    await gateway.start()
    service.on_stop(gateway.stop)
    serving = asyncio.create_task(server.serve_until_asked(), name="door")

    async def close_door() -> None:
        server.ask_to_exit()
        await asyncio.wait([serving])

    service.on_stop(close_door)
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
    listening.cancel()
    if serving.done():
        serving.result()


SERVICE: Final = ServiceDefinition("gateway", ServiceSettings, build)
