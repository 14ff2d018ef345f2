"""What one client sees of the events: read from the stream's store, in order, from where it stopped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from typing import Final

from popagent_bus.connection import StoredMessage, StreamState
from popagent_gateway.streams.event_hub import ALL_EVENTS, EventHub
from popagent_gateway.streams.hub_feed import HubFeed, framed
from popagent_gateway.streams.topics import HEALTH, TOPIC_OF, subjects_of
from popagent_kit import json
from popagent_proto.base import Message
from popagent_proto.matrix import EVENTS

# A client that is further behind loads its pages again; that is cheaper than hearing of every step.
LONGEST_REPLAY: Final = 5_000
EVENT_ID: Final = re.compile(r"\A([0-9a-f]{12})-([0-9]{1,18})\Z")


def identity_of(state: StreamState) -> str:
    """Return a token of the stream's identity that fits into an SSE id."""
    return hashlib.sha256(state.identity.encode()).hexdigest()[:12]


class EventFeed(HubFeed):
    """One client's place in the event stream."""

    kind = "events"

    def __init__(self, hub: EventHub, topics: frozenset[str], last_event_id: str | None) -> None:
        super().__init__(hub)
        self._topics = topics
        self._wanted = subjects_of(topics)
        self.wants_health = HEALTH in topics
        self._last_event_id = last_event_id
        self._identity = ""
        self._position = 0

    async def _begin(self) -> bytes:
        state = await self._hub.bus.stream_state(EVENTS)
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
        bus = self._hub.bus
        if check:
            state = await bus.stream_state(EVENTS)
            if identity_of(state) != self._identity or state.last_seq < self._position:
                self._identity, self._position = identity_of(state), state.last_seq
                yield self._place("resync")
                return
            if state.last_seq == self._position:
                return
        pending = 1
        while pending:
            page = await bus.direct_get(EVENTS, ALL_EVENTS, self._position + 1)
            pending = page.pending if page.messages else 0
            if page.messages and page.messages[0].seq > self._position + 1:
                # What lay between is older than the stream keeps.
                self._position = page.messages[-1].seq
                yield self._place("resync")
                continue
            if data := self._render(page.messages):
                yield data

    def _render(self, messages: list[StoredMessage]) -> bytes:
        events = []
        for message in messages:
            self._position = message.seq
            if message.subject in self._wanted:
                name = Message.registry[message.subject].subject_parts()[2]
                # Compact JSON has no line break, so that it is one data line as it is.
                told = message.data if b"\n" not in message.data else json.dumps(json.loads(message.data))
                data = b'{"name":"%b","event":%b}' % (name.encode(), told)
                events.append(framed(TOPIC_OF[message.subject], self._id(), data))
        return b"".join(events)

    def _id(self) -> str:
        return f"{self._identity}-{self._position}"

    def _place(self, name: str) -> bytes:
        return framed(name, self._id(), json.dumps({"topics": sorted(self._topics)}))
