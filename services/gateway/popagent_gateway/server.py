"""uvicorn, told to end open streams with a word before it waits for them."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from popagent_gateway.http_protocol import DoorProtocol
from popagent_gateway.settings import GatewaySettings
from popagent_gateway.streams.closing import Closing
from popagent_kit.errors import ConfigurationError

KEEP_ALIVE_S: Final = 20
DATE_S: Final = 1.0


class DoorServer(uvicorn.Server):
    """Leaves signals to the host, ends streams properly, and sleeps while there is nothing to do."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings, closing: Closing) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host.strip("[]"),
                port=settings.port,
                http=DoorProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=max(1, round(settings.drain_s)),
            )
        )
        self.closing = closing
        self.listening = asyncio.Event()
        self._exit_asked = asyncio.Event()

    @property
    def port(self) -> int:
        """Return the bound port, after the start."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def serve_until_asked(self) -> None:
        """Serve until `ask_to_exit`.

        Raises:
            ConfigurationError: The address cannot be had.
        """
        await self._serve()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so; raises as `serve_until_asked` does."""
        try:
            await super().startup(sockets)
        except SystemExit as error:
            address = f"{self.config.host}:{self.config.port}"
            raise ConfigurationError(
                f"Cannot listen on {address}: another program has it, or it is not an address of this machine. "
                "Set POPAGENT_PORT or POPAGENT_HOST."
            ) from error
        self.listening.set()

    def ask_to_exit(self) -> None:
        """Close the door; `serve_until_asked` returns when open requests ended or the drain time is over.

        Streams end here: uvicorn's own stop would wait for them, then cut them, and only then tell the application.
        """
        self.should_exit = True
        self.closing.set()
        self._exit_asked.set()

    async def main_loop(self) -> None:
        """Wait for the exit with one wake-up a second instead of ten; it only refreshes the date header."""
        counter = 0
        while not await self.on_tick(counter):
            counter += 10
            try:
                await asyncio.wait_for(self._exit_asked.wait(), DATE_S)
            except TimeoutError:
                continue
