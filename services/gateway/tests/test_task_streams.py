"""A task as it is followed: each record once, over lost wake-ups, lost places and owners that are away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from popagent_gateway.streams import hub_feed
from popagent_gateway.streams import task as task_streams
from popagent_kit.clock import now
from popagent_kit.errors import AppError, UnavailableError
from popagent_proto.matrix import transcript_subject
from popagent_proto.task_runner.activity import ActivityRecord
from popagent_proto.task_runner.news import ReadTaskNews, TaskNews
from popagent_proto.task_runner.tasks import TaskChanged, TaskDeleted, TaskNotFoundError

from .conftest import Owner, Served, SseEvent, events_of
from .test_tasks import TASK


class Work:
    """A task as its owner has it."""

    def __init__(self, runner: Owner) -> None:
        self.task = TASK
        self.records: dict[int, ActivityRecord] = {}
        self.revision = 0
        self.page = 200
        self.refuses: AppError | None = None
        self.runner = runner
        runner.answer(ReadTaskNews, self.news)

    def news(self, query: ReadTaskNews) -> TaskNews | AppError:
        if self.refuses is not None:
            return self.refuses
        after = self.revision if query.after is None else query.after
        found = sorted((each for each in self.records.values() if each.revision > after), key=lambda r: r.revision)
        found = found[: self.page]
        revision = found[-1].revision if found else self.revision
        more = revision < self.revision
        return TaskNews(
            records=found,
            revision=revision,
            more=more,
            reset=after > self.revision,
            task=None if more or query.version == self.task.version else self.task,
        )

    async def says(self, seq: int, text: str = "word", *, tells: bool = True) -> None:
        self.revision += 1
        self.records[seq] = ActivityRecord(seq=seq, revision=self.revision, attempt=1, at=now(), kind="text", text=text)
        if tells:
            await self.runner.bus.wake(transcript_subject("t1"))

    async def becomes(self, state: str) -> None:
        self.task = self.task.model_copy(update={"state": state, "version": self.task.version + 1})
        event = TaskChanged(aggregate_id="t1", version=self.task.version, task=self.task)
        await self.runner.bus.publish(event.to_subject(), event.encode(), event.event_id)


@asynccontextmanager
async def following(served: Served, last: str | None = None) -> AsyncIterator[AsyncIterator[SseEvent]]:
    headers = {} if last is None else {"last-event-id": last}
    async with (
        asyncio.timeout(15),
        served.http.stream("GET", "/api/tasks/t1/events", headers=headers) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        yield events_of(answer)


def texts(events: list[SseEvent]) -> list[str]:
    """Return what the records said, the newest of each."""
    said: dict[int, str] = {}
    for event in events:
        if event.name == "records":
            said |= {each["seq"]: each["text"] for each in json.loads(event.data)["records"]}
    return [said[seq] for seq in sorted(said)]


async def test_what_is_written_arrives_then_the_state_and_who_comes_back_misses_nothing(
    served: Served, task_runner: Owner
) -> None:
    work = Work(task_runner)
    await work.says(1, "before")
    async with following(served) as stream:
        ready, task = await anext(stream), await anext(stream)
        await work.says(2, "one")
        heard = await anext(stream)
        await work.becomes("running")
        runs = await anext(stream)
    for seq in range(3, 40):
        await work.says(seq, f"n{seq}")
    await work.says(2, "one two")
    work.page = 4

    async with following(served, heard.id) as stream:
        again = await anext(stream)
        missed = []
        while (event := await anext(stream)).name == "records":
            missed.append(event)

    assert (ready.name, ready.id, json.loads(ready.data)) == ("ready", "1", {"taskId": "t1", "revision": 1})
    assert (task.name, json.loads(task.data)) == ("task", TASK.wire())
    assert (heard.name, heard.id) == ("records", "2")
    assert json.loads(heard.data) == {"after": 1, "revision": 2, "records": [work_record(2, 2, "one", heard)]}
    assert (runs.name, json.loads(runs.data)["state"]) == ("task", "running")
    assert (again.name, again.id) == ("ready", "2")
    assert texts(missed) == ["one two", *(f"n{seq}" for seq in range(3, 40))]
    # The task comes behind the last record, so that who hears of an end has all of it.
    assert (event.name, event.id) == ("task", str(work.revision))


def work_record(seq: int, revision: int, text: str, event: SseEvent) -> dict[str, object]:
    record = ActivityRecord(seq=seq, revision=revision, attempt=1, at=now(), kind="text", text=text).wire()
    return {**record, "at": json.loads(event.data)["records"][0]["at"]}


async def test_records_that_come_fast_are_read_together(
    served: Served, task_runner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_streams, "LEAST_GAP_S", 0.3)
    work = Work(task_runner)
    async with following(served) as stream:
        await anext(stream), await anext(stream)
        for seq in range(1, 51):
            await work.says(seq, f"n{seq}")
            await asyncio.sleep(0)
        events = []
        while len(texts(events)) < 50:
            events.append(await anext(stream))

    assert texts(events) == [f"n{seq}" for seq in range(1, 51)]
    assert len(events) <= 4


@pytest.mark.parametrize("place", ["7", "nonsense", "", "-1", "9" * 19])
async def test_a_place_that_the_transcript_does_not_have_gives_resync(
    served: Served, task_runner: Owner, place: str
) -> None:
    work = Work(task_runner)
    await work.says(1)

    async with following(served, place) as stream:
        first, _ = await anext(stream), await anext(stream)
        await work.says(2)
        second = await anext(stream)

    assert (first.name, first.id, second.name, second.id) == ("resync", "1", "records", "2")


async def test_a_lost_wake_up_and_an_owner_that_is_away_cost_time_alone(
    served: Served, task_runner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_feed, "TICK_S", 0.2)
    monkeypatch.setattr(hub_feed, "AGAIN_S", 0.1)
    work = Work(task_runner)
    async with following(served) as stream:
        await anext(stream), await anext(stream)
        work.refuses = UnavailableError()
        await work.says(1, tells=False)
        await asyncio.sleep(0.5)
        work.refuses = None
        heard = await anext(stream)

    assert (heard.name, heard.id) == ("records", "1")


async def test_a_task_that_is_deleted_ends_the_stream_with_a_word(served: Served, task_runner: Owner) -> None:
    work = Work(task_runner)
    async with following(served) as stream:
        await anext(stream), await anext(stream)
        work.refuses = TaskNotFoundError()
        event = TaskDeleted(aggregate_id="t1", version=3, task_id="t1")
        await task_runner.bus.publish(event.to_subject(), event.encode(), event.event_id)
        rest = [event.name async for event in stream]

    assert rest == ["deleted"]


async def test_what_happens_to_another_task_asks_nobody(served: Served, task_runner: Owner) -> None:
    work = Work(task_runner)
    async with following(served) as stream:
        await anext(stream), await anext(stream)
        asked = len(task_runner.asked)
        other = TASK.model_copy(update={"id": "t2"})
        event = TaskChanged(aggregate_id="t2", version=1, task=other)
        await task_runner.bus.publish(event.to_subject(), event.encode(), event.event_id)
        await task_runner.bus.wake(transcript_subject("t2"))
        await work.says(1)
        await anext(stream)

    assert len(task_runner.asked) == asked + 1


async def test_an_unknown_task_is_not_followed(served: Served, task_runner: Owner) -> None:
    task_runner.answer(ReadTaskNews, TaskNotFoundError())

    answer: httpx2.Response = await served.http.get("/api/tasks/none/events")

    assert answer.status_code == 404
    assert not served.gateway.hub._listeners
