"""Agents that write to each other through every service: in a chat, in a task, and where a hook does not let them."""

from __future__ import annotations

import asyncio

import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, call
from tests.hook_door import HookDoor, denies
from tests.suite import Suite
from tests.talk import Talk
from tests.tasks import calls_of, give, task_in

TOOL = "agentCommunication"
PROMPT = "Have the gauge looked at."
QUESTION = "Is the gauge dry?"


def script(suite: Suite) -> None:
    suite.model.script(
        Reply(tool_calls=(call("agent-researcher", prompt="Look at the gauge."),), when=PROMPT),
        Reply(tool_calls=(call(TOOL, operation="send", to="reviewer", message=QUESTION),), when="Look at the gauge."),
        Reply(tool_calls=(call(TOOL, operation="wait"),), when="was woken by it"),
        Reply(text="It is dry.", when=QUESTION),
        Reply(text="The gauge is dry, says the reviewer.", when="from reviewer, the answer to letter-1"),
    )
    suite.model.set_default(Reply(text="All is well with it."))


async def test_a_chat_and_a_task_whose_specialists_talk_say_who_asked_whom(suite: Suite, talk: Talk) -> None:
    script(suite)
    said = await asyncio.to_thread(suite.popagent, "chat", PROMPT)

    script(suite)
    task = await task_in(talk, await give(talk, PROMPT))

    assert said.stdout == "All is well with it.\n"
    assert f"· Reviewer begins, asked by researcher: {QUESTION}\n" in said.stderr
    assert "· Reviewer done" in said.stderr
    assert (task["state"], task["output"]) == ("completed", "All is well with it.")
    begun = [record["text"] for record in task["activity"] if record["kind"] == "status" and record["agentId"]]
    assert begun == ["Works on: Look at the gauge.", f"Asked by researcher: {QUESTION}"]
    assert {each["status"] for each in calls_of(task, TOOL)} == {"running", "completed"}


@pytest.mark.parametrize("event", ["SubagentStart", "PreToolUse"])
async def test_whoever_a_hook_keeps_from_work_is_not_woken_either(
    suite: Suite, talk: Talk, running_hook_door: HookDoor, event: str
) -> None:
    running_hook_door.forget()
    running_hook_door.answers = {"/0": denies("Not the reviewer.")}
    matcher = "reviewer" if event == "SubagentStart" else "agent-reviewer"
    url = f"{running_hook_door.origin}/0"
    hook = await talk.json("POST", "/api/hooks", {"name": "Guard", "event": event, "matcher": matcher, "url": url})
    script(suite)

    session = new_id()
    answer = await talk.chat(PROMPT, session)
    await talk.json("DELETE", f"/api/hooks/{hook['id']}")

    assert answer.text == "All is well with it."
    (asked,) = running_hook_door.told
    assert (asked["event"], asked["agentId"]) == (event, "researcher")
    messages = [each for request in suite.model.requests() for each in request["body"]["messages"]]
    assert any("The hook “Guard” refused this: Not the reviewer." in str(each.get("content")) for each in messages)
    stored = (await talk.json("GET", f"/api/sessions/{session}"))["messages"][1]
    worked = [part["data"]["agentId"] for part in stored["parts"] if part["type"] == "data-agentActivity"]
    assert worked == ["researcher"]
