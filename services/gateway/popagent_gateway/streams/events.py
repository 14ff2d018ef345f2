"""What one client sees of the events: read from the stream's store, in order, from where it stopped."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from popagent_bus import Bus
from popagent_bus.connection import StoredMessage, StreamState
from popagent_gateway.streams.event_hub import ALL_EVENTS, EventHub
from popagent_gateway.streams.mailbox import Mailbox
from popagent_gateway.streams.topics import HEALTH, TOPIC_OF, subjects_of
from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_proto.base import Message
from popagent_proto.http import SuiteHealthView
from popagent_proto.matrix import EVENTS
from popagent_uistream.encode import HEARTBEAT

log = logging.getLogger(__name__)

# Seconds without a byte to the client after which a comment is sent, and the store is read in case a wake-up was lost.
TICK_S: Final = 15.0
# After a failed read.
AGAIN_S: Final = 1.0
# A client that is further behind loads its pages again; that is cheaper than hearing of every step.
LONGEST_REPLAY: Final = 5_000
EVENT_ID: Final = re.compile(r"\A([0-9a-f]{12})-([0-9]{1,18})\Z")


def identity_of(state: StreamState) -> str:
    """Return a token of the stream's identity that fits into an SSE id."""
    return hashlib.sha256(state.identity.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Wake:
    """Something happened."""

    check: bool


@dataclass(frozen=True)
class End:
    """The client left, or the door closes."""


Item = Wake | End | SuiteHealthView


class EventFeed:
    """One client's place in the event stream."""

    kind = "events"
    subjects: frozenset[str] | None = None

    def __init__(self, hub: EventHub, topics: frozenset[str], last_event_id: str | None) -> None:
        self._hub = hub
        self._bus: Bus = hub.bus
        self._topics = topics
        self._subjects = subjects_of(topics)
        self.wants_health = HEALTH in topics
        self._last_event_id = last_event_id
        self._identity = ""
        self._position = 0
        self._first = b""
        self._woken = False
        self._mailbox: Mailbox[Item] = Mailbox()

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

    async def events(self) -> AsyncIterator[bytes]:
        """Yield what `open` found, then events of the topics and heartbeats."""
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
            # Events of other topics wake us too, and say nothing to the client.
            if clock() >= tick_at:
                yield HEARTBEAT
                tick_at = clock() + TICK_S
            async for data in self._news(check=check):
                yield data
                tick_at = clock() + TICK_S

    async def release(self) -> None:
        """Be woken no more."""
        self._hub.remove(self)

    async def open(self) -> None:
        """Take the client's place, or the newest one when it has none or its own is lost.

        Raises:
            UnavailableError: The event stream cannot be read now.
        """
        self._hub.add(self)
        try:
            self._first = await self._begin()
        except BaseException:
            self._hub.remove(self)
            raise

    async def _begin(self) -> bytes:
        state = await self._bus.stream_state(EVENTS)
        self._identity, self._position = identity_of(state), state.last_seq
        if self._last_event_id is None:
            return self._place("ready")
        known = EVENT_ID.match(self._last_event_id)
        if known is None or known[1] != self._identity or int(known[2]) > state.last_seq:
            return self._place("resync")
        if state.last_seq - int(known[2]) > LONGEST_REPLAY:
            return self._place("resync")
        self._position = int(known[2])
        self.wake(check=False)
        return self._place("ready")

    async def _news(self, *, check: bool) -> AsyncIterator[bytes]:
        try:
            if check:
                state = await self._bus.stream_state(EVENTS)
                if identity_of(state) != self._identity or state.last_seq < self._position:
                    self._identity, self._position = identity_of(state), state.last_seq
                    yield self._place("resync")
                    return
                if state.last_seq == self._position:
                    return
            pending = 1
            while pending:
                page = await self._bus.direct_get(EVENTS, ALL_EVENTS, self._position + 1)
                pending = page.pending if page.messages else 0
                if page.messages and page.messages[0].seq > self._position + 1:
                    # What lay between is older than the stream keeps.
                    self._position = page.messages[-1].seq
                    yield self._place("resync")
                    continue
                if data := self._render(page.messages):
                    yield data
        except AppError as error:
            log.debug("events cannot be read now: %s", error.message)
            asyncio.get_running_loop().call_later(AGAIN_S, lambda: self.wake(check=True))

    def _render(self, messages: list[StoredMessage]) -> bytes:
        events = []
        for message in messages:
            self._position = message.seq
            if message.subject in self._subjects:
                name = Message.registry[message.subject].subject_parts()[2]
                # Compact JSON has no line break, so that it is one data line as it is.
                data = message.data if b"\n" not in message.data else json.dumps(json.loads(message.data))
                head = f'event: {TOPIC_OF[message.subject]}\nid: {self._id()}\ndata: {{"name":"{name}","event":'
                events.append(head.encode() + data + b"}\n\n")
        return b"".join(events)

    def _id(self) -> str:
        return f"{self._identity}-{self._position}"

    def _place(self, name: str) -> bytes:
        data = json.dumps({"topics": sorted(self._topics)})
        return f"event: {name}\nid: {self._id()}\ndata: ".encode() + data + b"\n\n"
