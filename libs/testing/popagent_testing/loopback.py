"""A server on loopback that answers byte for byte: `async with` one, whose class says how a connection is answered."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self


@dataclass(kw_only=True)
class LoopbackServer(ABC):
    """Takes a free port unless it is given one; what is still unanswered at the end is cut."""

    port: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    @abstractmethod
    async def answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection, which is closed afterwards."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            # Cancelled when the server closes; asyncio would report a connection that ends so as a defect.
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await self.answered(reader, writer)
        finally:
            self._open.discard(task)
            writer.close()
