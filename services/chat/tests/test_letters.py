"""Agents of a turn that write to each other, over the real bus and database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.turns import StopTurn
from popagent_testing.model_replies import call
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.suite_bus import until
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, Watched

TOOL = "agentCommunication"
TASK = "Find the word of the day."
QUESTION = "Is heron spelt right in README.md?"
ANSWER = "It is spelt right."


def writes(to: str, message: str, call_id: str = "") -> ScriptedCall:
    return replace(call(TOOL, operation="send", to=to, message=message), call_id=call_id)


def script_two(model: ModelServer, *answer: Reply) -> None:
    """The researcher asks the reviewer, and waits for what it says."""
    model.script(
        Reply(tool_calls=(call("agent-researcher", prompt=TASK),), when="What is the word?"),
        Reply(tool_calls=(writes("reviewer", QUESTION),), when=TASK),
        Reply(tool_calls=(call(TOOL, operation="wait"),), when="was woken by it"),
        *answer,
        Reply(text="The word is heron, as the reviewer confirms.", when=ANSWER),
        Reply(text="It is heron.", when="as the reviewer confirms"),
    )


def activities(message: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {part["id"]: part["data"] for part in message["parts"] if part["type"] == "data-agentActivity"}


def read_by(model: ModelServer, role: str) -> str:
    """All that the model read as the agent of this role."""
    asked = [each.body["messages"] for each in model.requests]
    mine = [messages for messages in asked if messages[0]["content"].startswith(f"You are the {role} of popagent")]
    return "\n".join(str(message.get("content")) for messages in mine for message in messages)


async def test_two_specialists_talk_and_the_orchestrator_reads_what_comes_of_it_alone(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    before = await pool.fetch("select id, tools from agents order by id")
    look = Reply(text="I look.", tool_calls=(call("read", path="README.md"),), when=QUESTION)
    script_two(model, look, Reply(text=ANSWER, when="The word of the day is heron"))

    turn = await door.say("What is the word?", new_id())

    assert turn.text == "It is heron."
    assert ANSWER in read_by(model, "researcher")
    assert "What is the word?" in read_by(model, "reviewer")
    assert QUESTION not in read_by(model, "orchestrator")
    _, answer = await door.stored(turn.view.session_id)
    given, woken = activities(answer).values()
    assert (given["agentId"], woken["agentId"], woken["askedBy"]) == ("researcher", "reviewer", "researcher")
    assert (woken["state"], woken["steps"], woken["task"]) == ("completed", 2, QUESTION)
    rows = await pool.fetch("select * from delegations where turn_id = $1 order by call_id", turn.view.turn_id)
    assert [(row["agent_id"], row["state"]) for row in rows] == [("researcher", "completed"), ("reviewer", "completed")]
    assert rows[1]["call_id"].startswith(f"{rows[0]['call_id']}/")
    assert rows[1]["thread_id"] == woken["threadId"]
    said = await pool.fetch(
        "select role, parts::text from messages where thread_id = $1 order by seq", woken["threadId"]
    )
    assert [row["role"] for row in said] == ["user", "assistant"]
    assert f"researcher wrote letter-1 to you:\\n\\n{QUESTION}" in said[0]["parts"]
    used = await pool.fetchval("select output_tokens from turns where id = $1", turn.view.turn_id)
    assert used > sum(row["output_tokens"] for row in rows)
    assert await pool.fetch("select id, tools from agents order by id") == before


async def test_who_is_woken_has_its_own_rights_and_its_effects_are_written_down(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, root: Path
) -> None:
    write = call("write", path="word.txt", content="heron\n")
    model.script(
        Reply(tool_calls=(call("agent-researcher", prompt=TASK),), when="Have it written"),
        Reply(tool_calls=(write, writes("implementer", "Please put the word into word.txt.")), when=TASK),
        Reply(tool_calls=(call(TOOL, operation="wait"),), when="was woken by it"),
        Reply(tool_calls=(write,), when="Please put the word"),
        Reply(text="It is written down.", when="word.txt"),
        Reply(text="The implementer wrote it.", when="It is written down."),
        Reply(text="Done.", when="The implementer wrote it."),
    )

    turn = await door.say("Have it written", new_id())

    assert turn.text == "Done."
    assert (root / "default" / "word.txt").read_text() == "heron\n"
    assert "There is no tool named write" in read_by(model, "researcher")
    (intent,) = await pool.fetch("select tool, call_id from turn_intents where turn_id = $1", turn.view.turn_id)
    assert (intent["tool"], intent["call_id"].count("/")) == ("write", 2)


async def test_questions_to_nobody_to_oneself_and_of_any_length_are_refused_and_a_failing_peer_answers_that(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    odd = (
        writes("stranger", "Hm?", "a"),
        writes("orchistrator", "Hm?", "b"),
        writes("reviewer", "x" * 8_001, "c"),
        writes("reviewer", "Will you fail?", "d"),
    )
    model.script(
        Reply(tool_calls=odd, when="Ask around"),
        *[Reply(status=500, error="broken", when="Will you fail?")] * 3,
        Reply(tool_calls=(call(TOOL, operation="wait"),), when="was woken by it"),
        Reply(text="One failed."),
    )

    turn = await door.say("Ask around", new_id())

    assert turn.text.endswith("One failed.")
    _, answer = await door.stored(turn.view.session_id)
    calls = {part["toolCallId"]: part for part in answer["parts"] if part["type"] == f"tool-{TOOL}"}
    assert "Nobody here is called 'stranger'" in calls["a"]["errorText"]
    assert calls["b"]["errorText"] == "A letter to yourself is not sent."
    assert "at most 8,000 bytes" in calls["c"]["errorText"]
    assert calls["d"]["output"].startswith("letter-1: reviewer was woken")
    assert {name: each["state"] for name, each in activities(answer).items()} == {"d": "failed"}
    failure = await pool.fetchval("select delegation_failure_text from agent_runtime_settings")
    assert f"letter-2 from reviewer, the answer to letter-1:\n{failure}" in read_by(model, "orchestrator")


async def test_a_stopped_turn_leaves_nobody_at_work(chat: Chat, door: Door, model: ModelServer, pool: Pool) -> None:
    script_two(model, Reply(text="I look around. " * 40, hold=True, after=80, when=QUESTION))
    turn = await door.start("What is the word?", new_id())
    reading = asyncio.create_task(turn.read())
    await until(lambda: writing(pool, turn))

    await door.ask(StopTurn(session_id=turn.view.session_id))
    await reading

    assert turn.ending["type"] == "abort"
    _, answer = await door.stored(turn.view.session_id)
    assert [each["state"] for each in activities(answer).values()] == ["stopped", "stopped"]
    states = await pool.fetch("select agent_id, state from delegations where turn_id = $1", turn.view.turn_id)
    assert {row["agent_id"]: row["state"] for row in states} == {"researcher": "stopped", "reviewer": "stopped"}
    await until(lambda: left(model))


async def test_a_turn_that_is_taken_over_while_two_talk_ends_once_with_nobody_at_work(
    start: StartChat, door: Door, model: ModelServer, pool: Pool
) -> None:
    script_two(model, Reply(text="I look around. " * 40, hold=True, after=80, when=QUESTION))
    first = await start()
    turn = await door.start("What is the word?", new_id())
    reading = asyncio.create_task(turn.read())
    await until(lambda: writing(pool, turn))

    await first.stop()
    await reading

    answer = await pool.fetchval(
        "select parts from messages where thread_id = $1 and role = 'assistant'", turn.view.session_id
    )
    assert [each["state"] for each in activities({"parts": answer}).values()] == ["stopped", "stopped"]
    assert turn.ending["type"] == "error"


async def writing(pool: Pool, turn: Watched) -> bool:
    """Whether the stored state of the turn holds what the woken agent has said."""
    stored = await pool.fetchval("select checkpoint::text from turns where id = $1", turn.view.turn_id)
    return stored is not None and "I look around" in stored


async def left(model: ModelServer) -> bool:
    return all(each.outcome != "running" for each in model.requests)
