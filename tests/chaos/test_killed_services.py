"""Killed processes of the real suite: every watcher gets an end or the whole answer, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark, until_sleeping
from popagent_kit.ids import new_id
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_replies import Reply, ScriptedCall, call
from tests.suite import POSTGRES, Suite
from tests.talk import Talk, TurnStream

HALF = "one two three four five six seven eight nine ten"
pytestmark = pytest.mark.timeout(180)


async def read_until(stream: TurnStream, text: str) -> None:
    """Read chunks until the answer holds `text`."""
    async for _ in stream:
        if text in stream.answer.text:
            return


async def ended(talk: Talk, session: str, timeout_s: float = 20.0) -> dict[str, Any]:
    """Return the session once no turn of it runs."""
    deadline = time.monotonic() + timeout_s
    while (view := await talk.json("GET", f"/api/sessions/{session}"))["runningTurnId"] is not None:
        assert time.monotonic() < deadline, "the turn never ended"
        await asyncio.sleep(0.1)
    return view


async def test_chat_killed_in_mid_turn_ends_every_watcher_and_keeps_the_text(suite: Suite, talk: Talk) -> None:
    session = new_id()
    suite.model.script(Reply(text=HALF, after=5, hold=True))
    async with talk.open_chat("count", session) as first, talk.open_join(session) as second:
        await read_until(first, "five")

        started = time.monotonic()
        old = suite.kill("chat")
        answers = await asyncio.gather(first.read(), second.read())
        took_s = time.monotonic() - started

    assert took_s < 15
    for answer in answers:
        assert answer.done
        assert answer.ending is not None
        assert answer.ending["type"] == "error"
    view = await ended(talk, session)
    assert [message["role"] for message in view["messages"]] == ["user", "assistant"]
    stored = view["messages"][1]
    assert stored["metadata"]["state"] == "interrupted"
    assert "one two three four five" in "".join(part.get("text", "") for part in stored["parts"])
    await suite.until_back("chat", old)
    suite.model.reset()
    assert (await talk.chat("again", session)).ending == {"type": "finish", "finishReason": "stop"}


@pytest.mark.skipif(confinement_problem() is not None, reason="no sandbox can be made here")
async def test_chat_killed_while_a_specialist_runs_a_command_leaves_one_end_and_no_program(
    suite: Suite, talk: Talk
) -> None:
    session, mark = new_id(), new_mark()
    command = orjson.dumps({"command": f"(setsid sleep {mark} &); sleep {mark}"}).decode()
    suite.model.script(
        Reply(tool_calls=(ScriptedCall("agent-implementer", '{"prompt": "Run it."}'),)),
        Reply(tool_calls=(ScriptedCall("shell", command),)),
    )
    async with talk.open_chat("have it run", session) as stream:
        reading = asyncio.create_task(stream.read())
        async with asyncio.timeout(20):
            await until_sleeping(mark, 2)

        old = suite.kill("chat")
        answer = await reading

    await suite.until(lambda: not marked_processes(mark), "nothing of the command lives")
    assert (answer.ending or {})["type"] == "error"
    view = await ended(talk, session)
    assert [message["role"] for message in view["messages"]] == ["user", "assistant"]
    parts = view["messages"][1]["parts"]
    assert view["messages"][1]["metadata"]["state"] == "interrupted"
    assert [part["data"]["state"] for part in parts if part["type"] == "data-agentActivity"] == ["stopped"]
    assert [part["state"] for part in parts if part["type"] == "tool-agent-implementer"] == ["output-error"]
    await suite.until_back("chat", old)
    suite.model.reset()
    assert (await talk.chat("again", session)).ending == {"type": "finish", "finishReason": "stop"}


async def test_chat_killed_while_two_specialists_talk_leaves_one_end_and_nobody_at_work(
    suite: Suite, talk: Talk
) -> None:
    session = new_id()
    suite.model.script(
        Reply(tool_calls=(call("agent-researcher", prompt="Ask about it."),), when="have them talk"),
        Reply(
            tool_calls=(call("agentCommunication", operation="send", to="reviewer", message="Is it so?"),),
            when="Ask about it.",
        ),
        Reply(tool_calls=(call("agentCommunication", operation="wait"),), when="was woken by it"),
        Reply(text="I look around. " * 60, hold=True, after=100, when="Is it so?"),
    )
    async with talk.open_chat("have them talk", session) as stream:
        reading = asyncio.create_task(stream.read())
        await suite.until(lambda: suite.model.held() == 1, "the woken one writes")

        old = suite.kill("chat")
        answer = await reading

    assert answer.ending is not None
    assert answer.ending["type"] == "error"
    await suite.until_back("chat", old)
    view = await ended(talk, session)
    assert [message["role"] for message in view["messages"]] == ["user", "assistant"]
    stored = view["messages"][1]
    assert stored["metadata"]["state"] == "interrupted"
    told = {part["data"]["agentId"]: part["data"] for part in stored["parts"] if part["type"] == "data-agentActivity"}
    assert {name: each["state"] for name, each in told.items()} == {"researcher": "stopped", "reviewer": "stopped"}
    assert told["reviewer"]["askedBy"] == "researcher"
    suite.model.reset()
    assert (await talk.chat("again", session)).ending == {"type": "finish", "finishReason": "stop"}


async def test_gateway_killed_in_mid_turn_does_not_stop_the_turn(suite: Suite, talk: Talk) -> None:
    session = new_id()
    suite.model.script(Reply(text=HALF, after=5, hold=True))
    async with talk.open_chat("count", session) as stream:
        await read_until(stream, "five")

        await suite.restart("gateway")
    async with suite.talk() as again, again.open_join(session) as joined:
        await read_until(joined, "five")
        suite.model.release()
        answer = await joined.read()
        stored = (await ended(again, session))["messages"][1]

    assert answer.ending is not None
    assert answer.ending["type"] == "finish"
    assert answer.text == HALF
    assert answer.message == stored


async def test_nats_killed_in_mid_turn_gives_the_same_stream_to_the_last_chunk(suite: Suite, talk: Talk) -> None:
    session = new_id()
    text = " ".join(f"w{number}" for number in range(600))
    suite.model.script(Reply(text=text, token_delay_s=0.005))
    async with talk.open_chat("write", session) as stream:
        await read_until(stream, "w100")

        await suite.restart("nats")
        answer = await stream.read()

    assert answer.ending is not None
    assert answer.ending["type"] == "finish"
    assert answer.text == text
    assert answer.message == (await ended(talk, session))["messages"][1]


async def test_postgres_killed_in_mid_turn_and_later_turns_work_without_a_restart_of_ours(
    suite: Suite, talk: Talk
) -> None:
    session = new_id()
    before = {name: suite.pid(name) for name in ("gateway", "chat")}
    suite.model.script(Reply(text=HALF, after=5, hold=True))
    async with talk.open_chat("count", session) as stream:
        await read_until(stream, "five")

        await suite.restart(POSTGRES)
        suite.model.release()
        answer = await stream.read()

    assert answer.done
    assert answer.ending is not None
    view = await ended(talk, session)
    assert len(view["messages"]) == 2
    assert (await talk.chat("again", session)).ending == {"type": "finish", "finishReason": "stop"}
    assert {name: suite.pid(name) for name in before} == before


async def test_two_chat_instances_restarted_in_turn_under_load_fail_no_request(suite: Suite, talk: Talk) -> None:
    second = suite.another("chat")
    await suite.until(second.ready, "the second chat is ready")
    stop = asyncio.Event()
    answers = []

    async def load() -> None:
        while not stop.is_set():
            answers.append(await talk.chat("hello", new_id()))

    workers = [asyncio.create_task(load()) for _ in range(8)]
    for _ in range(2):
        await asyncio.to_thread(second.end)
        second.start()
        await suite.until(second.ready, "the second chat is ready again")
        await suite.restart("chat", number=15)
    stop.set()
    await asyncio.gather(*workers)
    await asyncio.to_thread(second.end)

    assert len(answers) > 50
    assert [answer.status for answer in answers if answer.status != 200] == []
    assert [answer.ending for answer in answers if answer.ending != {"type": "finish", "finishReason": "stop"}] == []
