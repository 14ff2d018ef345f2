"""Hooks are told of every attempt after its start and its end were stored, and what they do changes nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from popagent_testing.model_server import Reply
from tests.hook_door import HookDoor, denies
from tests.suite import Suite
from tests.talk import Talk
from tests.tasks import give, task_in


@pytest.fixture
async def door(running_hook_door: HookDoor, talk: Talk) -> AsyncIterator[HookDoor]:
    """Where hooks of both events are posted to, for the time of one test."""
    running_hook_door.forget()
    made = [
        await talk.json("POST", "/api/hooks", {"name": event, "event": event, "url": f"{running_hook_door.origin}/{n}"})
        for n, event in enumerate(("TaskStart", "TaskStop", "TaskStop"))
    ]
    yield running_hook_door
    for hook in made:
        await talk.json("DELETE", f"/api/hooks/{hook['id']}")


async def told_of(door: HookDoor, task_id: str, count: int) -> list[dict[str, Any]]:
    """Return what was told of the task once it is so much."""
    async with asyncio.timeout(20):
        while len(told := [each for each in door.told if each["taskId"] == task_id]) < count:
            await asyncio.sleep(0.05)
    return told


async def audited(talk: Talk, task_id: str, count: int) -> list[dict[str, Any]]:
    """Return the audit, page by page, once there is so much in it."""
    async with asyncio.timeout(20):
        while True:
            items: list[dict[str, Any]] = []
            cursor = ""
            while cursor is not None:
                page = await talk.json("GET", f"/api/tasks/{task_id}/hooks?limit=2{cursor and '&cursor='}{cursor}")
                items += page["items"]
                cursor = page["nextCursor"]
            if len(items) >= count:
                return items
            await asyncio.sleep(0.05)


async def test_an_attempt_is_told_of_once_it_is_stored_and_again_once_it_has_ended(
    suite: Suite, talk: Talk, door: HookDoor
) -> None:
    door.answers = {"/0": denies("Not today."), "/1": b"nonsense"}
    suite.model.script(Reply(text="The herons are counted."))

    task_id = await give(talk, "Count the herons.", agentId="researcher")
    start, *ends = await told_of(door, task_id, 3)
    task = await task_in(talk, task_id)

    assert [start["event"], *(end["event"] for end in ends)] == ["TaskStart", "TaskStop", "TaskStop"]
    assert {(each["turnId"], each["traceId"]) for each in (start, *ends)} == {(task["turnId"], task["traceId"])}
    assert (start["sessionId"], start["agentId"]) == (None, "researcher")
    assert start["input"]["attempt"] == 1
    assert start["input"]["title"] == "Count the herons."
    ended = {name: ends[0]["input"][name] for name in ("outcome", "state", "errorClass", "output")}
    assert ended == {
        "outcome": "completed",
        "state": "completed",
        "errorClass": None,
        "output": "The herons are counted.",
    }
    assert task["state"] == "completed"
    runs = await audited(talk, task_id, 3)
    assert [(run["event"], run["status"], run["decision"]) for run in runs] == [
        ("TaskStart", "ok", None),
        ("TaskStop", "ok", None),
        ("TaskStop", "ok", None),
    ]
    shown = await asyncio.to_thread(suite.popagent, "hooks", "runs", task_id, "--task")
    assert "TaskStart" in shown.stdout


async def test_each_attempt_has_a_failed_end_before_the_next_one_begins(
    suite: Suite, talk: Talk, door: HookDoor
) -> None:
    suite.model.script(*[Reply(status=500, error="broken")] * 3, Reply(text="At last."))

    task_id = await give(talk, "Try.")
    task = await task_in(talk, task_id)
    told = await told_of(door, task_id, 6)

    assert (task["state"], task["attemptCount"]) == ("completed", 2)
    assert [each["event"] for each in told] == ["TaskStart", "TaskStop", "TaskStop"] * 2
    assert told[1]["input"] | {"outcome": "failed", "state": "queued", "errorClass": "provider"} == told[1]["input"]
    assert told[4]["input"]["outcome"] == "completed"
    assert [len({each["turnId"] for each in part}) for part in (told[:3], told[3:])] == [1, 1]
    assert told[0]["turnId"] != told[3]["turnId"]


async def test_the_audit_of_no_task_is_none(talk: Talk) -> None:
    unknown = await talk.http.get("/api/tasks/nothing/hooks")
    nonsense = await talk.http.get("/api/tasks/nothing/hooks?cursor=x&limit=0")

    assert unknown.status_code == 404
    assert (nonsense.status_code, nonsense.json()["field"]) == (422, "limit")
