"""Tasks through every service: given, followed, carried out by agents and specialists, refused in words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, call
from tests.suite import Suite, SuiteError
from tests.talk import Talk
from tests.tasks import calls_of, give, task_in


async def test_a_specialist_of_a_task_writes_a_file_and_the_command_line_tells_how(suite: Suite, talk: Talk) -> None:
    name = f"{new_id()}.txt"
    suite.model.script(
        Reply(text="I have it written.", tool_calls=(call("agent-implementer", prompt="Write the word."),)),
        Reply(tool_calls=(call("write", path=name, content="heron\n"),)),
        Reply(text="It is written."),
        Reply(text="The word stands there."),
    )

    made = await asyncio.to_thread(suite.popagent, "task-create", "default", "Write the word down.")
    task_id = made.stdout.strip()
    followed = await asyncio.to_thread(suite.popagent, "task-show", task_id, "--follow")

    task = await task_in(talk, task_id)
    assert (task["state"], task["output"], task["attemptCount"]) == ("completed", "The word stands there.", 1)
    assert (suite.workspaces / "default" / name).read_text() == "heron\n"
    begun, ended, whole = calls_of(task, "write")
    assert (begun["status"], ended["status"]) == ("running", "completed")
    assert begun["callId"] == whole["callId"]
    assert name in whole["result"]
    assert followed.stdout.count("The word stands there.") == 1
    assert name in followed.stdout
    gone = await talk.json("DELETE", f"/api/tasks/{task_id}")
    assert gone == {"id": task_id, "deleted": True}


async def test_two_tasks_are_carried_out_at_once(suite: Suite, talk: Talk) -> None:
    names = ("finch", "raven")
    suite.model.script(*(Reply(text=f"The {name} is done.", hold=True, when=name) for name in names))

    tasks = [await give(talk, f"Look for the {name}.") for name in names]
    await suite.until(lambda: suite.model.held() == 2, "two models are asked at once")
    running = [await task_in(talk, each, "running") for each in tasks]
    suite.model.release()
    done = [await task_in(talk, each) for each in tasks]

    assert len({task["traceId"] for task in running}) == 2
    assert [task["output"] for task in done] == [f"The {name} is done." for name in names]


async def test_a_task_that_runs_is_cancelled_resolved_and_deleted_each_when_it_may_be(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="one two three", hold=True, after=1))
    task_id = await give(talk, "Count.")
    await suite.until(lambda: suite.model.held() == 1, "the model answers")

    early = [
        await talk.http.delete(f"/api/tasks/{task_id}"),
        await talk.http.post(f"/api/tasks/{task_id}/resolve", json={"evidence": "It counts."}),
    ]
    first, second = [await talk.json("POST", f"/api/tasks/{task_id}/cancel") for _ in range(2)]
    task = await task_in(talk, task_id)
    third = await talk.json("POST", f"/api/tasks/{task_id}/cancel")
    resolved = await talk.json("POST", f"/api/tasks/{task_id}/resolve", {"evidence": "It had counted enough."})
    late = await talk.http.post(f"/api/tasks/{task_id}/resolve", json={"evidence": "Again."})

    assert [(each.status_code, each.json()["state"]) for each in early] == [(409, "running")] * 2
    assert {first["state"], second["state"]} <= {"cancelling", "cancelled"}
    assert (task["state"], third["state"], resolved["state"]) == ("cancelled", "cancelled", "completed")
    assert (late.status_code, late.json()["state"]) == (409, "completed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": " \n"}, "prompt"),
        ({"prompt": "a" * 100_001}, "prompt"),
        ({"prompt": "a", "workspaceId": "nowhere"}, "workspaceId"),
        ({"prompt": "a", "agentId": "nobody"}, "agentId"),
        ({"prompt": "a", "model": "no-model"}, "model"),
        ({"prompt": "a", "maxAttempts": 0}, "maxAttempts"),
        ({"prompt": "a", "priority": 11}, "priority"),
        ({"prompt": "a", "source": "self-update"}, "source"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_its_field(talk: Talk, body: dict[str, Any], field: str) -> None:
    refused = await talk.http.post("/api/tasks", json=body)

    assert (refused.status_code, refused.json()["field"]) == (422, field)


async def test_the_same_key_is_the_same_task_and_no_other(suite: Suite, talk: Talk) -> None:
    key = {"idempotency-key": new_id()}

    answers = [
        await talk.http.post("/api/tasks", json={"prompt": prompt}, headers=key) for prompt in ("One.", "One.", "Two.")
    ]

    assert [each.status_code for each in answers] == [201, 201, 409]
    assert answers[0].json()["id"] == answers[1].json()["id"] == key["idempotency-key"]
    assert answers[2].json()["code"] == "key_used"


async def test_following_a_task_that_does_not_complete_ends_with_an_error(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="one two three", hold=True, after=1))
    task_id = await give(talk, "Count.", agentId="researcher", priority=-10)
    await talk.json("POST", f"/api/tasks/{task_id}/cancel")

    with pytest.raises(SuiteError, match="ended with 1"):
        await asyncio.to_thread(suite.popagent, "task-show", task_id, "--follow")
