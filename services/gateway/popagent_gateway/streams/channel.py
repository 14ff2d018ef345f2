"""What one client sees of a channel: every change after its place, asked of the owner."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

from popagent_gateway.streams.event_hub import EventHub
from popagent_gateway.streams.hub_feed import HubFeed, framed
from popagent_kit import json
from popagent_proto.chat.channels import ChannelChanges, ChannelMessageChanged, ReadChannelChanges

PLACE: Final = re.compile(r"\A[0-9]{1,18}\Z")


class ChannelFeed(HubFeed):
    """One client's place in the changes of a channel; the SSE id is the revision of the change."""

    kind = "channel"
    subjects = frozenset({ChannelMessageChanged.subject})

    def __init__(self, hub: EventHub, channel_id: str, last_event_id: str | None) -> None:
        super().__init__(hub)
        self._channel_id = channel_id
        self._last_event_id = last_event_id
        self._place = 0

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

    async def _news(self, *, check: bool) -> AsyncIterator[bytes]:
        del check  # the owner tells with each answer when the place is lost
        more = True
        while more:
            changes = await self._ask(self._place)
            more = changes.more
            if changes.reset:
                self._place = changes.revision
                yield self._said("resync")
            elif changes.items:
                yield self._taken(changes)

    async def _ask(self, after: int | None) -> ChannelChanges:
        return await self._hub.bus.ask(ReadChannelChanges(channel_id=self._channel_id, after=after))

    def _taken(self, changes: ChannelChanges) -> bytes:
        said = []
        for message in changes.items:
            self._place = message.revision
            said.append(framed("message", str(message.revision), message.encode()))
        return b"".join(said)

    def _said(self, name: str) -> bytes:
        return framed(name, str(self._place), json.dumps({"channelId": self._channel_id, "revision": self._place}))
