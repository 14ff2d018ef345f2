"""A bounded hand-over between what produces a stream and the one task that writes it to a client."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """One reader, any number of writers, all on one event loop; one wait serves items and time alike."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item; the writer looks after the bound."""
        self._items.append(item)
        self._emptied.clear()
        self._wake()

    def put_first(self, item: T) -> None:
        """Add an item that overtakes all others."""
        self._items.appendleft(item)
        self._emptied.clear()
        self._wake()

    async def get(self, timeout_s: float) -> T | None:
        """Return the next item, or None when none came within `timeout_s`."""
        if not self._items:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(timeout_s, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if not self._items:
            return None
        item = self._items.popleft()
        if not self._items:
            self._emptied.set()
        return item

    async def emptied(self) -> None:
        """Wait until the reader has taken everything."""
        await self._emptied.wait()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
