"""Who follows a task loses no record of it, whatever is restarted meanwhile."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from popagent_testing.model_replies import Reply
from tests.suite import POSTGRES, Suite
from tests.talk import Talk
from tests.tasks import ENDED, give, task_in

pytestmark = pytest.mark.timeout(240)
WORDS = 300


class Follower:
    """Reads a task's stream over as many connections as it takes, as the page and the command line do."""

    def __init__(self, talk: Talk, task_id: str) -> None:
        self._talk = talk
        self._path = f"/api/tasks/{task_id}/events"
        self.place: str | None = "0"
        self.connections = 0
        self.names: list[str] = []
        self.records: dict[int, dict[str, Any]] = {}
        self.task: dict[str, Any] | None = None

    async def follow(self) -> None:
        """Return once the task has ended."""
        while self.task is None or self.task["state"] not in ENDED:
            headers = {} if self.place is None else {"last-event-id": self.place}
            try:
                async with self._talk.http.stream("GET", self._path, headers=headers) as answer:
                    if answer.status_code == 200:
                        self.connections += 1
                        await self._read(answer)
            except httpx2.HTTPError:
                pass  # the door is gone for a moment
            await asyncio.sleep(0.1)

    async def _read(self, answer: httpx2.Response) -> None:
        event: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                event[name] = value
            elif event.get("event"):
                self._take(event)
                event = {}
                if self.task is not None and self.task["state"] in ENDED:
                    return

    def _take(self, event: dict[str, str]) -> None:
        self.names.append(event["event"])
        self.place = event.get("id", self.place)
        if event["event"] == "records":
            self.records |= {each["seq"]: each for each in json.loads(event["data"])["records"]}
        elif event["event"] == "task":
            self.task = json.loads(event["data"])

    async def until(self, word: str) -> None:
        """Wait until the word was heard, and what comes after it begins."""
        async with asyncio.timeout(60):
            while f"{word} " not in "".join(each["text"] for each in self.records.values()):
                await asyncio.sleep(0.05)


async def test_a_task_is_followed_to_its_end_over_restarts_of_the_door_the_bus_and_the_database(
    suite: Suite, talk: Talk
) -> None:
    text = " ".join(f"w{number}" for number in range(WORDS))
    suite.model.script(Reply(text=text, token_delay_s=0.06))
    task_id = await give(talk, "Count.")
    follower = Follower(talk, task_id)
    following = asyncio.create_task(follower.follow())

    await follower.until("w10")
    await suite.restart("gateway")
    await follower.until("w60")
    await suite.restart("nats")
    await follower.until("w120")
    await suite.restart(POSTGRES)
    await task_in(talk, task_id, "completed", timeout_s=120)
    async with asyncio.timeout(30):
        await following
    view = await talk.json("GET", f"/api/tasks/{task_id}")

    assert follower.connections >= 2
    assert "resync" not in follower.names
    assert follower.records == {each["seq"]: each for each in view["activity"]}
    assert view["output"] == text


@pytest.mark.full
async def test_a_task_whose_runner_is_killed_is_followed_into_its_next_attempt(suite: Suite, talk: Talk) -> None:
    suite.model.script(
        Reply(text="one two three four five six", hold=True, after=4, when="Count."),
        Reply(text="all of it", when="Count."),
    )
    task_id = await give(talk, "Count.")
    follower = Follower(talk, task_id)
    following = asyncio.create_task(follower.follow())
    await follower.until("two")

    await suite.restart("task-runner")
    suite.model.drop_connections()
    await task_in(talk, task_id, "completed", timeout_s=120)
    async with asyncio.timeout(30):
        await following
    view = await talk.json("GET", f"/api/tasks/{task_id}")

    assert view["attemptCount"] == 2
    assert follower.records == {each["seq"]: each for each in view["activity"]}
    assert {each["attempt"] for each in follower.records.values()} == {1, 2}
