"""Schedules through every service: what is due becomes a task that an agent carries out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from popagent_testing.model_server import Reply
from tests.suite import Suite
from tests.talk import Talk
from tests.tasks import make_due, task_in

YEARLY = {"name": "Report", "prompt": "Write the yearly report.", "cron": "@yearly"}


async def runs(talk: Talk, schedule_id: str, count: int, outcome: str = "started") -> list[dict[str, Any]]:
    """Return what came of the schedule's times once so many of them have that outcome."""
    async with asyncio.timeout(20):
        while True:
            page = await talk.json("GET", f"/api/schedules/{schedule_id}/runs")
            found = [each for each in page["items"] if each["outcome"] == outcome]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


async def test_a_schedule_that_is_due_becomes_one_task_that_an_agent_carries_out(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="The report is written.", when="yearly report"))
    schedule = await talk.json("POST", "/api/schedules", {**YEARLY, "maxAttempts": 2})

    await make_due(suite, schedule["id"])
    [run] = await runs(talk, schedule["id"], 1)
    task = await task_in(talk, run["taskId"])

    assert (task["state"], task["output"]) == ("completed", "The report is written.")
    assert (task["scheduleId"], task["prompt"], task["maxAttempts"]) == (schedule["id"], YEARLY["prompt"], 2)
    [now] = [each for each in (await talk.json("GET", "/api/schedules"))["items"] if each["id"] == schedule["id"]]
    assert now["nextRunAt"] == schedule["nextRunAt"]
    assert now["lastRun"]["taskId"] == run["taskId"]
    await talk.json("DELETE", f"/api/schedules/{schedule['id']}")
    assert (await task_in(talk, run["taskId"]))["state"] == "completed"


async def test_a_time_is_skipped_while_the_task_of_an_earlier_one_runs(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="slowly", hold=True, when="slow report"))
    schedule = await talk.json("POST", "/api/schedules", {**YEARLY, "prompt": "Write the slow report."})
    asked = await talk.json("POST", f"/api/schedules/{schedule['id']}/run")
    await suite.until(lambda: suite.model.held() == 1, "the first task runs")

    await make_due(suite, schedule["id"])
    [skipped] = await runs(talk, schedule["id"], 1, "skipped")
    suite.model.release()

    assert skipped["taskId"] is None
    assert asked["taskId"] in skipped["note"]
    assert (await task_in(talk, asked["taskId"]))["state"] == "completed"


async def test_the_command_line_previews_makes_runs_pauses_and_deletes_a_schedule(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="Done.", when="from the command line"))

    def said(*words: str) -> str:
        return suite.popagent(*words).stdout

    preview = await asyncio.to_thread(said, "schedule-preview", "30 7 * * MON-FRI")
    made = await asyncio.to_thread(said, "schedule-create", "Mornings", "@daily", "Report from the command line.")
    schedule_id = made.splitlines()[0].rsplit(" ", 1)[1]
    paused = await asyncio.to_thread(said, "schedule-pause", schedule_id)
    ran = await asyncio.to_thread(said, "schedule-run", schedule_id)
    task = await task_in(talk, ran.split()[-1])
    history = await asyncio.to_thread(said, "schedule-history", schedule_id)
    deleted = await asyncio.to_thread(said, "schedule-delete", schedule_id)

    assert "At 07:30 on Monday through Friday" in preview
    assert "rests" in paused
    assert (task["state"], task["output"]) == ("completed", "Done.")
    assert task["id"] in history
    assert "is deleted" in deleted


@pytest.mark.parametrize("rule", ["61 * * * *", "0 0 30 2 *", "@every 0s", "* * * * * *", "x" * 10_240, "*/0 * * * *"])
async def test_a_rule_that_is_none_is_refused_with_its_field(talk: Talk, rule: str) -> None:
    answers = [
        await talk.http.post("/api/schedules", json={**YEARLY, "cron": rule}),
        await talk.http.get("/api/schedules/preview", params={"cron": rule}),
    ]

    assert [(each.status_code, each.json()["field"]) for each in answers] == [(422, "cron")] * 2


@pytest.mark.parametrize("given", [{"workspaceId": "nowhere"}, {"agentId": "nobody"}, {"model": "no-model"}])
async def test_a_schedule_of_nobody_is_refused_with_its_field(talk: Talk, given: dict[str, str]) -> None:
    refused = await talk.http.post("/api/schedules", json={**YEARLY, **given})

    assert (refused.status_code, refused.json()["field"]) == (422, *given)
