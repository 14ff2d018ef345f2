"""One listener a process for everything that happens; it wakes the open event streams, which read for themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from nats.aio.msg import Msg

from popagent_bus import Bus
from popagent_gateway.suite_health import SuiteHealth
from popagent_kit import tasks
from popagent_proto.http import SuiteHealthView

log = logging.getLogger(__name__)

ALL_EVENTS: Final = "popagent.*.evt.>"
# How often health is looked at, and only while somebody listens.
HEALTH_S: Final = 5.0
# An event may be heard before it is stored, and after a reconnection pass before our subscription stands: the store is
# read again so much later.
LOOK_AGAIN_S: Final = 1.0
LOOK_AFTER_RECONNECTION_S: Final = (1.0, 3.0)


class Listener(Protocol):
    """An open event stream."""

    wants_health: bool
    subjects: frozenset[str] | None
    """Of which events it wants to be woken, once each is heard; None: of all, and again when each is surely stored."""
    about: bytes
    """Of those, the events that hold these bytes: an id, for who minds one thing alone."""

    def wake(self, *, check: bool) -> None:
        """Something happened; with `check` even the stream itself may be another."""
        ...

    def tell_health(self, view: SuiteHealthView) -> None:
        """The suite's health changed, or the listener is new."""
        ...


class EventHub:
    """Knows every open event stream of this process."""

    def __init__(self, bus: Bus, suite: SuiteHealth) -> None:
        self.bus = bus
        self.suite = suite
        self._listeners: set[Listener] = set()
        self._health: SuiteHealthView | None = None
        self._watch: asyncio.Task[None] | None = None
        self._undo: list[Callable[[], None]] = []
        self._look_again: asyncio.TimerHandle | None = None
        self._looks: list[asyncio.TimerHandle] = []

    async def start(self) -> None:
        """Listen from now on; the subscription ends with the bus."""
        await self.bus.subscribe(ALL_EVENTS, self._on_event)
        self._undo.append(self.bus.on_reconnect(self._on_reconnect))

    async def stop(self) -> None:
        """Stop watching health and reconnections."""
        for undo in self._undo:
            undo()
        for look in (self._look_again, *self._looks):
            if look is not None:
                look.cancel()
        await tasks.end(self._watch)

    def add(self, listener: Listener) -> None:
        """Wake `listener` from now on; one that wants health is told what is known."""
        self._listeners.add(listener)
        if listener.wants_health:
            if self._health is not None:
                listener.tell_health(self._health)
            if self._watch is None or self._watch.done():
                self._watch = tasks.lasting(self._watch_health, "health for event streams")

    def remove(self, listener: Listener) -> None:
        """Forget the listener; health is no longer asked for when it was the last who wanted it."""
        self._listeners.discard(listener)

    async def _on_event(self, message: Msg) -> None:
        # Core messages carry no stream sequence: who wants all events reads the stream's store instead.
        for listener in self._listeners:
            if listener.subjects is None or (message.subject in listener.subjects and listener.about in message.data):
                listener.wake(check=False)
        # While more of them come, each finds what the ones before did not.
        if self._look_again is not None:
            self._look_again.cancel()
        self._look_again = asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._wake_readers)

    async def _on_reconnect(self) -> None:
        self._wake_all(check=True)
        for look in self._looks:
            look.cancel()
        loop = asyncio.get_running_loop()
        self._looks = [loop.call_later(late, lambda: self._wake_all(check=True)) for late in LOOK_AFTER_RECONNECTION_S]

    def _wake_all(self, *, check: bool) -> None:
        for listener in self._listeners:
            listener.wake(check=check)

    def _wake_readers(self) -> None:
        for listener in self._listeners:
            if listener.subjects is None:
                listener.wake(check=False)

    async def _watch_health(self) -> None:
        while any(listener.wants_health for listener in self._listeners):
            view = await self.suite.ask_all()
            if view != self._health:
                self._health = view
                for listener in self._listeners:
                    if listener.wants_health:
                        listener.tell_health(view)
            await asyncio.sleep(HEALTH_S)
        self._health = None
