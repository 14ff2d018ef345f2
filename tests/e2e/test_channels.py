"""Channels through every service: a post, its task, the reply, and following it all over a killed service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, call
from tests.suite import Suite
from tests.talk import Talk
from tests.tasks import give, task_in

MESSAGES = "/api/channels/general/messages"


@asynccontextmanager
async def following(talk: Talk, place: int) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Follow #general from a place on; yields messages."""

    async def messages(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
        name = ""
        async for line in lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == "message":
                yield json.loads(line.removeprefix("data: "))
            assert name != "resync"

    headers = {"last-event-id": str(place)}
    async with asyncio.timeout(30), talk.http.stream("GET", "/api/channels/general/events", headers=headers) as answer:
        yield messages(answer.aiter_lines())


async def newest(talk: Talk) -> int:
    return int((await talk.json("GET", f"{MESSAGES}?limit=1"))["revision"])


async def until_reply(stream: AsyncIterator[dict[str, Any]], asked: str) -> list[dict[str, Any]]:
    """Return what was heard up to the reply in the thread of the post."""
    heard = []
    async for message in stream:
        heard.append(message)
        if message["threadId"] == asked:
            return heard
    raise AssertionError("the stream ended")


async def test_a_post_is_answered_by_a_task_and_the_command_line_shows_it(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="Seven herons stand there."))
    place = await newest(talk)
    async with following(talk, place) as stream:
        posted = await asyncio.to_thread(suite.popagent, "channel-post", "@researcher how many herons?")
        heard = await until_reply(stream, posted.stdout.strip())
    asked = posted.stdout.strip()
    shown = await asyncio.to_thread(suite.popagent, "channel-tail", "--thread", asked)

    assert heard[-1]["body"].startswith("Seven herons stand there.\n\n[Task: @researcher how many herons?")
    assert (heard[-1]["authorId"], heard[-1]["taskId"]) == ("researcher", asked)
    states = [each["run"]["state"] for each in heard if each["id"] == asked]
    assert states[-1] == "completed"
    assert states == sorted(states, key=["waiting", "queued", "running", "completed"].index)
    assert (await task_in(talk, asked))["agentId"] == "researcher"
    assert "how many herons?" in shown.stdout
    assert "Seven herons stand there." in shown.stdout


async def test_a_killed_chat_and_a_killed_gateway_cost_time_and_no_message(suite: Suite, talk: Talk) -> None:
    suite.model.script(Reply(text="It is done.", hold=True, when="marsh"))
    place = await newest(talk)
    message_id = new_id()
    body, key = {"body": "@researcher look at the marsh"}, {"idempotency-key": message_id}
    await talk.http.post(MESSAGES, json=body, headers=key)
    await suite.until(lambda: suite.model.held() == 1, "the model is asked")

    chat = suite.kill("chat")
    suite.model.release()
    await task_in(talk, message_id, "completed")
    await suite.until_back("chat", chat)
    await suite.restart("gateway")
    again = await talk.http.post(MESSAGES, json=body, headers=key)
    async with following(talk, place) as stream:
        heard = await until_reply(stream, message_id)
    history = (await talk.json("GET", f"{MESSAGES}?threadId={message_id}"))["items"]

    assert again.status_code == 201
    assert [each["id"] for each in history] == [message_id, heard[-1]["id"]]
    assert history[0]["run"]["state"] == "completed"
    assert history[1]["body"].startswith("It is done.")


async def test_a_task_posts_what_came_of_it_and_the_orchestrator_sees_it_in_the_state_of_the_company(
    suite: Suite, talk: Talk
) -> None:
    suite.model.script(Reply(text="Nine finches."))
    place = await newest(talk)
    task_id = await give(talk, "Count the finches.")
    async with following(talk, place) as stream:
        [said] = [each async for each in _first(stream, task_id)]
    suite.model.reset()
    suite.model.script(Reply(tool_calls=(call("companyStatus"),)), Reply(text="All is well."))

    answer = await talk.chat("How are we doing?")

    assert said["body"] == f"Nine finches.\n\n[Task: Count the finches.](/tasks/{task_id})"
    assert said["authorKind"] == "agent"
    [told] = [str(part["output"]) for part in answer.message["parts"] if part["type"] == "tool-companyStatus"]
    assert f"“Count the finches.” (task {task_id} in default): Nine finches." in told
    assert "Schedules: " in told
    assert "cannot be read" not in told


async def _first(stream: AsyncIterator[dict[str, Any]], task_id: str) -> AsyncIterator[dict[str, Any]]:
    async for message in stream:
        if message["taskId"] == task_id:
            yield message
            return


async def test_nobody_writes_in_the_name_of_popagent(suite: Suite, talk: Talk) -> None:
    for field, value in {"authorKind": "system", "authorId": "popagent", "authorName": "popagent"}.items():
        refused = await talk.http.post(MESSAGES, json={"body": "It is done.", field: value})

        assert (refused.status_code, refused.json()["field"]) == (422, field)
