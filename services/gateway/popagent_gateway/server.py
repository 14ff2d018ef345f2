"""uvicorn, told to end open streams with a word before it waits for them."""

from __future__ import annotations

import asyncio
import logging
import socket
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from popagent_gateway.settings import GatewaySettings
from popagent_gateway.streams.closing import Closing
from popagent_kit.errors import ConfigurationError

log = logging.getLogger(__name__)

HEADER_BYTES: Final = 64 * 1024
KEEP_ALIVE_S: Final = 20
DATE_S: Final = 1.0


class DoorServer(uvicorn.Server):
    """At a signal, streams end first: uvicorn itself would wait for them, then cut them, and only then tell the app."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings, closing: Closing) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host.strip("[]"),
                port=settings.port,
                http="httptools",
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
        self._loop = asyncio.get_running_loop()

    @property
    def port(self) -> int:
        """Return the bound port, after the start."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def serve_until_asked(self) -> None:
        """Serve until `ask_to_exit`, when somebody else looks after signals; else use `serve`."""
        await self._serve()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so.

        Raises:
            ConfigurationError: The address cannot be had.
        """
        try:
            await super().startup(sockets)
        except SystemExit as error:
            address = f"{self.config.host}:{self.config.port}"
            raise ConfigurationError(
                f"Cannot listen on {address}: another program has it, or it is not an address of this machine. "
                "Set POPAGENT_PORT or POPAGENT_HOST."
            ) from error
        self.listening.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End every stream now, then let uvicorn stop as it does."""
        super().handle_exit(sig, frame)
        self.ask_to_exit()

    def ask_to_exit(self) -> None:
        """Close the door; `serve` returns when open requests ended or the drain time is over."""
        self.should_exit = True
        self.closing.set_from_signal()
        self._loop.call_soon_threadsafe(self._exit_asked.set)

    async def main_loop(self) -> None:
        """Wait for the exit with one wake-up a second instead of ten; it only refreshes the date header."""
        counter = 0
        while not await self.on_tick(counter):
            counter += 10
            try:
                await asyncio.wait_for(self._exit_asked.wait(), DATE_S)
            except TimeoutError:
                continue
