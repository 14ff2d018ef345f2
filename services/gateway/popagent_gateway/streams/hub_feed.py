"""What one client sees behind the event hub: woken by it, a feed reads its own source from where the client stopped."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from popagent_gateway.streams.event_hub import EventHub
from popagent_gateway.streams.mailbox import Mailbox
from popagent_kit.errors import AppError
from popagent_proto.http import SuiteHealthView
from popagent_uistream.encode import HEARTBEAT

log = logging.getLogger(__name__)

# Seconds without a byte to the client after which a comment is sent, and the source is read in case a wake-up was lost.
TICK_S: Final = 15.0
# After a failed read.
AGAIN_S: Final = 1.0


@dataclass(frozen=True)
class Wake:
    """Something happened."""

    check: bool


@dataclass(frozen=True)
class End:
    """The client left, or the door closes."""


Item = Wake | End | SuiteHealthView


class HubFeed(ABC):
    """A listener of the hub and the feed of one answer."""

    kind: str
    wants_health = False
    subjects: frozenset[str] | None = None
    about = b""

    def __init__(self, hub: EventHub) -> None:
        self._hub = hub
        self._first = b""
        self._woken = False
        self._mailbox: Mailbox[Item] = Mailbox()

    @abstractmethod
    async def _begin(self) -> bytes:
        """Take the client's place, or the newest one when it has none or its own is lost, and say which."""

    @abstractmethod
    def _news(self, *, check: bool) -> AsyncIterator[bytes]:
        """Yield what came after the place; with `check` even the source itself may be another."""

    def wake(self, *, check: bool) -> None:
        """Read soon; many wake-ups are one read."""
        if check or not self._woken:
            self._woken = True
            self._mailbox.put(Wake(check))

    def tell_health(self, view: SuiteHealthView) -> None:
        """Pass the suite's health on."""
        self._mailbox.put(view)

    def leave(self) -> None:
        """Stop: the client is gone."""
        self._mailbox.put_first(End())

    def close(self) -> None:
        """Stop: the door closes. The client comes back with its last id."""
        self._mailbox.put_first(End())

    async def open(self) -> None:
        """Take the client's place.

        Raises:
            AppError: The source cannot be read now, or there is none.
        """
        self._hub.add(self)
        try:
            self._first = await self._begin()
        except BaseException:
            self._hub.remove(self)
            raise

    async def events(self) -> AsyncIterator[bytes]:
        """Yield what `open` found, then news and heartbeats."""
        clock = asyncio.get_running_loop().time
        yield self._first
        tick_at = clock() + TICK_S
        while True:
            item = await self._mailbox.get(max(0.0, tick_at - clock()))
            match item:
                case End():
                    return
                case SuiteHealthView():
                    yield b"event: health\ndata: " + item.encode() + b"\n\n"
                    tick_at = clock() + TICK_S
                    continue
                case Wake(check):
                    self._woken = False
                case None:
                    check = True
            # What is not for this client wakes us too, and says nothing to it.
            if clock() >= tick_at:
                yield HEARTBEAT
                tick_at = clock() + TICK_S
            try:
                async for data in self._news(check=check):
                    yield data
                    tick_at = clock() + TICK_S
            except AppError as error:
                log.debug("the source of a %s stream cannot be read now: %s", self.kind, error.message)
                asyncio.get_running_loop().call_later(AGAIN_S, lambda: self.wake(check=True))

    async def release(self) -> None:
        """Be woken no more."""
        self._hub.remove(self)


def framed(name: str, event_id: str, data: bytes) -> bytes:
    """Return a server-sent event; `data` is one line."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), event_id.encode(), data)
