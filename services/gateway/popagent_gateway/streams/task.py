"""What one client sees of a task: every record after its place and the task as it changes, asked of the owner."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Final

from nats.aio.subscription import Subscription

from popagent_bus.connection import unsubscribe
from popagent_gateway.streams.event_hub import EventHub
from popagent_gateway.streams.hub_feed import HubFeed, framed
from popagent_kit import json
from popagent_kit.errors import NotFoundError
from popagent_proto.matrix import transcript_subject
from popagent_proto.task_runner.news import ReadTaskNews, TaskNews
from popagent_proto.task_runner.tasks import (
    TaskChanged,
    TaskDeleted,
    TaskInterrupted,
    TaskStarted,
    TaskStopped,
)

PLACE: Final = re.compile(r"\A[0-9]{1,18}\Z")
# An agent that calls tools by the dozen is read this often; what came meanwhile comes at once.
LEAST_GAP_S: Final = 0.1


class TaskFeed(HubFeed):
    """One client's place in a transcript; the SSE id is its revision."""

    kind = "task"
    subjects = frozenset(
        event.subject for event in (TaskChanged, TaskStarted, TaskStopped, TaskInterrupted, TaskDeleted)
    )

    def __init__(self, hub: EventHub, task_id: str, last_event_id: str | None) -> None:
        super().__init__(hub)
        self.about = task_id.encode()
        self._task_id = task_id
        self._last_event_id = last_event_id
        self._place = 0
        self._version: int | None = None
        self._read_at = 0.0
        self._wakes: Subscription | None = None

    async def open(self) -> None:
        """Listen, then take the client's place: what is written in between wakes us."""
        self._wakes = await self._hub.bus.on_wake(transcript_subject(self._task_id), self._grew)
        try:
            await super().open()
        except BaseException:
            await self.release()
            raise

    async def release(self) -> None:
        """Be woken no more."""
        await super().release()
        if self._wakes is not None:
            await unsubscribe(self._wakes)
            self._wakes = None

    async def _grew(self) -> None:
        self.wake(check=False)

    async def _begin(self) -> bytes:
        place = self._last_event_id
        known = None if place is None or not PLACE.match(place) else int(place)
        news = await self._ask(known)
        lost = news.reset or (place is not None and known is None)
        self._place = news.revision if lost or known is None else known
        if news.more:
            self.wake(check=True)
        return self._said("resync" if lost else "ready") + self._taken(news)

    async def _news(self, *, check: bool) -> AsyncIterator[bytes]:
        del check  # the owner tells with each answer when the place is lost
        await asyncio.sleep(max(0.0, self._read_at + LEAST_GAP_S - asyncio.get_running_loop().time()))
        more = True
        while more:
            try:
                news = await self._ask(self._place)
            except NotFoundError:
                yield self._said("deleted")
                self.leave()
                return
            more = news.more
            if news.reset:
                self._place = news.revision
                yield self._said("resync")
            if data := self._taken(news):
                yield data

    async def _ask(self, after: int | None) -> TaskNews:
        self._read_at = asyncio.get_running_loop().time()
        return await self._hub.bus.ask(ReadTaskNews(task_id=self._task_id, after=after, version=self._version))

    def _taken(self, news: TaskNews) -> bytes:
        said = b""
        if news.records:
            page = {"after": self._place, "revision": news.revision, "records": [each.wire() for each in news.records]}
            self._place = news.revision
            said += framed("records", str(self._place), json.dumps(page))
        if news.task is not None:
            self._version = news.task.version
            said += framed("task", str(self._place), news.task.encode())
        return said

    def _said(self, name: str) -> bytes:
        return framed(name, str(self._place), json.dumps({"taskId": self._task_id, "revision": self._place}))
