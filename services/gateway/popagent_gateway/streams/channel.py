"""What one client sees of a channel: every change after its place, asked of the owner."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from popagent_gateway.streams.event_hub import EventHub
from popagent_gateway.streams.mailbox import Mailbox
from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_proto.chat.channels import ChannelChanges, ChannelMessageChanged, ReadChannelChanges
from popagent_proto.http import SuiteHealthView
from popagent_uistream.encode import HEARTBEAT

log = logging.getLogger(__name__)

# Seconds without a byte after which a comment is sent, and the owner is asked in case a wake-up was lost.
TICK_S: Final = 15.0
# After a question that was not answered.
AGAIN_S: Final = 1.0
PLACE: Final = re.compile(r"\A[0-9]{1,18}\Z")


@dataclass(frozen=True)
class Wake:
    """Something was written."""


@dataclass(frozen=True)
class End:
    """The client left, or the door closes."""


class ChannelFeed:
    """One client's place in the changes of a channel; the SSE id is the revision of the change."""

    kind = "channel"
    wants_health = False
    subjects: frozenset[str] | None = frozenset({ChannelMessageChanged.subject})

    def __init__(self, hub: EventHub, channel_id: str, last_event_id: str | None) -> None:
        self._hub = hub
        self._channel_id = channel_id
        self._last_event_id = last_event_id
        self._place = 0
        self._first = b""
        self._woken = False
        self._mailbox: Mailbox[Wake | End] = Mailbox()

    def wake(self, *, check: bool) -> None:
        """Ask soon; many wake-ups are one question."""
        del check
        if not self._woken:
            self._woken = True
            self._mailbox.put(Wake())

    def tell_health(self, view: SuiteHealthView) -> None:
        """Nobody asked for it."""

    def leave(self) -> None:
        """Stop: the client is gone."""
        self._mailbox.put_first(End())

    def close(self) -> None:
        """Stop: the door closes. The client comes back with its last id."""
        self._mailbox.put_first(End())

    async def open(self) -> None:
        """Take the client's place, or the newest one when it has none or its own is lost.

        Raises:
            NotFoundError: There is no such channel.
        """
        self._hub.add(self)
        try:
            self._first = await self._begin()
        except BaseException:
            self._hub.remove(self)
            raise

    async def events(self) -> AsyncIterator[bytes]:
        """Yield what `open` found, then changes and heartbeats."""
        clock = asyncio.get_running_loop().time
        yield self._first
        tick_at = clock() + TICK_S
        while True:
            item = await self._mailbox.get(max(0.0, tick_at - clock()))
            match item:
                case End():
                    return
                case Wake():
                    self._woken = False
                case None:
                    pass
            if clock() >= tick_at:
                yield HEARTBEAT
                tick_at = clock() + TICK_S
            async for data in self._news():
                yield data
                tick_at = clock() + TICK_S

    async def release(self) -> None:
        """Be woken no more."""
        self._hub.remove(self)

    async def _begin(self) -> bytes:
        place = self._last_event_id
        if place is not None and not PLACE.match(place):
            self._place = (await self._ask(None)).revision
            return self._said("resync")
        changes = await self._ask(None if place is None else int(place))
        if changes.reset:
            self._place = changes.revision
            return self._said("resync")
        self._place = changes.revision if place is None else int(place)
        if changes.more:
            self.wake(check=True)
        return self._said("ready") + self._taken(changes)

    async def _news(self) -> AsyncIterator[bytes]:
        try:
            more = True
            while more:
                changes = await self._ask(self._place)
                more = changes.more
                if changes.reset:
                    self._place = changes.revision
                    yield self._said("resync")
                elif changes.items:
                    yield self._taken(changes)
        except AppError as error:
            log.debug("a channel cannot be read now: %s", error.message)
            asyncio.get_running_loop().call_later(AGAIN_S, lambda: self.wake(check=True))

    async def _ask(self, after: int | None) -> ChannelChanges:
        return await self._hub.bus.ask(ReadChannelChanges(channel_id=self._channel_id, after=after))

    def _taken(self, changes: ChannelChanges) -> bytes:
        said = []
        for message in changes.items:
            self._place = message.revision
            said.append(b"event: message\nid: %d\ndata: %b\n\n" % (message.revision, message.encode()))
        return b"".join(said)

    def _said(self, name: str) -> bytes:
        data = json.dumps({"channelId": self._channel_id, "revision": self._place})
        return b"event: %b\nid: %d\ndata: %b\n\n" % (name.encode(), self._place, data)
