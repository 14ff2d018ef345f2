"""The bus of one process: ask, publish, serve, and leave in the right order."""

from __future__ import annotations

import logging
from typing import Final, Self, TypeVar

from pydantic import BaseModel

from popagent_bus import asking
from popagent_bus.answering import Answering
from popagent_bus.connection import CONNECT_TIMEOUT_S, Connection
from popagent_bus.consuming import BACKOFF_S, Consuming
from popagent_bus.handlers import Deps, Handlers
from popagent_proto.base import Request

MAX_WORKERS: Final = 64

R = TypeVar("R", bound=BaseModel)
log = logging.getLogger(__name__)


class Bus(Connection):
    """What the services hold; see Connection for publish, direct get and wake-ups."""

    _answering: Answering | None = None
    _consuming: Consuming | None = None

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        service: str,
        user: str | None = None,
        password: str | None = None,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> Self:
        """Connect as `service`; raises as `open` does."""
        bus = cls(url, service=service, user=user, password=password)
        await bus.open(timeout_s)
        return bus

    async def ask(
        self, message: Request[R], *, timeout_s: float | None = None, patience_s: float = asking.PATIENCE_S
    ) -> R:
        """Send a command or query to its owner and return the answer; see `asking.ask` for what it raises."""
        return await asking.ask(self, message, timeout_s=timeout_s, patience_s=patience_s)

    async def serve(
        self,
        handlers: Handlers[Deps],
        deps: Deps,
        *,
        max_workers: int = MAX_WORKERS,
        backoff_s: tuple[float, ...] = BACKOFF_S,
    ) -> None:
        """Answer requests and hear events from now on, each kind with at most `max_workers` handlers at once."""
        handlers.check_owner(self.service)
        self._consuming = Consuming(self, handlers, deps, max_workers, backoff_s)
        await self._consuming.start()
        self._answering = Answering(self, handlers, deps, max_workers)
        await self._answering.start()

    async def stop_serving(self) -> None:
        """Take nothing new and finish what was taken; asking and publishing still work."""
        if self._answering is not None:
            await self._answering.stop()
            self._answering = None
        if self._consuming is not None:
            await self._consuming.stop()
            self._consuming = None

    async def drain(self) -> None:
        """Stop serving, send what is buffered, close. Running turns and the relay end before this."""
        await self.stop_serving()
        if self.client.is_closed:
            return
        await self.settle()
        if self.client.is_connected:
            await self.flush()
        # The client calls its own closing a loss.
        self.state.connected = False
        try:
            await self.client.close()
        except OSError as error:  # the server went away in the meantime
            log.debug("connection was over", extra={"reason": repr(error)})
