from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import DeleteSession
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.suite_bus import until
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, Watched

TASK = "Which word is it today? Look into README.md."
ASK_RESEARCHER = ScriptedCall("agent-researcher", orjson.dumps({"prompt": TASK}).decode())
READ_README = ScriptedCall("read", '{"path": "README.md"}')
FOUND = "The word is heron, README.md line 1."


@pytest.fixture(autouse=True)
async def seeds(pool: Pool) -> AsyncIterator[None]:
    """Undo what a test does to the profiles."""
    await pool.execute("create table if not exists kept_agents as table agents")
    yield
    await pool.execute("delete from agents")
    await pool.execute("insert into agents table kept_agents")


def activities(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [part["data"] for part in message["parts"] if part["type"] == "data-agentActivity"]


def asked_of(model: ModelServer, number: int) -> str:
    """What the model was told in one request, as one text."""
    return orjson.dumps(model.requests[number].body["messages"]).decode()


async def test_a_specialist_works_in_a_thread_of_its_own_and_its_supervisor_reads_its_text_alone(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.script(
        Reply(tool_calls=(ASK_RESEARCHER,)),
        Reply(text="I look.", tool_calls=(READ_README,)),
        Reply(text=FOUND),
        Reply(text="It is heron."),
    )

    turn = await door.say("What is the word of the day?", new_id())

    assert turn.text == "It is heron."
    supervisor, specialist = asked_of(model, 3), asked_of(model, 1)
    assert FOUND in supervisor
    assert "I look." not in supervisor
    assert "word of the day is heron" not in supervisor  # what the specialist's tools returned
    assert TASK in specialist
    assert "What is the word of the day?" in specialist
    tools = [tool["function"]["name"] for tool in model.requests[1].body["tools"]]
    assert tools[:4] == ["read", "list", "grep", "stat"]
    assert not any(name.startswith("agent-") for name in tools)
    _, answer = await door.stored(turn.view.session_id)
    (activity,) = activities(answer)
    assert (activity["agentId"], activity["state"], activity["steps"]) == ("researcher", "completed", 2)
    assert [entry.get("tool") for entry in activity["entries"].values()] == [None, "read", None]
    (row,) = await pool.fetch("select * from delegations where turn_id = $1", turn.view.turn_id)
    assert (row["agent_id"], row["state"], row["thread_id"]) == ("researcher", "completed", activity["threadId"])
    messages = await pool.fetch("select * from messages where thread_id = $1 order by seq", row["thread_id"])
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert {message["metadata"]["threadId"] for message in messages} == {row["thread_id"]}
    assert await pool.fetchval("select count(*) from messages where thread_id = $1", turn.view.session_id) == 2
    used = await pool.fetchval("select output_tokens from turns where id = $1", turn.view.turn_id)
    assert used > row["output_tokens"] > 0


async def test_the_threads_of_specialists_go_with_their_session(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.script(Reply(tool_calls=(ASK_RESEARCHER,)), Reply(text=FOUND), Reply(text="It is heron."))
    turn = await door.say("What is the word of the day?", new_id())
    thread = await pool.fetchval("select thread_id from delegations where turn_id = $1", turn.view.turn_id)

    await door.ask(DeleteSession(session_id=turn.view.session_id))

    assert await pool.fetchval("select count(*) from threads where id = $1", thread) == 0
    assert await pool.fetchval("select count(*) from messages where thread_id = $1", thread) == 0


async def test_a_specialist_uses_the_model_that_somebody_chose_for_it(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute(
        "update agents set model_override = 'quick-model', override_is_seeded = false where id = 'researcher'"
    )
    model.script(Reply(tool_calls=(ASK_RESEARCHER,)), Reply(text=FOUND), Reply(text="It is heron."))

    await door.say("What is the word of the day?", new_id())

    assert [request.body["model"] for request in model.requests] == ["scripted-model", "quick-model", "scripted-model"]


async def test_a_specialists_rights_are_its_own_where_the_orchestrator_has_none(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("update agents set workspace_access = 'none' where id = 'orchistrator'")
    model.script(
        Reply(tool_calls=(READ_README, ASK_RESEARCHER)),
        Reply(tool_calls=(READ_README,)),
        Reply(text="It stands there."),
        Reply(text="It is known."),
    )

    turn = await door.say("What is the word of the day?", new_id())

    assert turn.text == "It is known."
    assert "word of the day is heron" in asked_of(model, 2)
    assert "word of the day is heron" not in asked_of(model, 3)


async def test_only_agents_that_are_delegable_can_be_given_work(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("update agents set delegable = id = 'reviewer'")

    await door.say("hello", new_id())

    tools = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert [name for name in tools if name.startswith("agent-")] == ["agent-reviewer"]


async def test_a_specialist_whose_model_fails_costs_its_result_and_not_the_turn(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.script(Reply(tool_calls=(ASK_RESEARCHER,)), *[Reply(status=500)] * 3, Reply(text="I could not find out."))

    turn = await door.say("What is the word of the day?", new_id())

    assert turn.text == "I could not find out."
    failure = await pool.fetchval("select delegation_failure_text from agent_runtime_settings")
    assert failure in asked_of(model, -1)
    _, answer = await door.stored(turn.view.session_id)
    assert activities(answer)[0]["state"] == "failed"


async def test_a_turn_that_is_taken_over_in_mid_delegation_ends_once_with_nothing_running(
    start: StartChat, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.script(Reply(tool_calls=(ASK_RESEARCHER,)), Reply(text="I look around. " * 40, hold=True, after=80))
    first = await start()
    turn = await door.start("What is the word of the day?", new_id())
    watching = asyncio.create_task(turn.read())
    await until(lambda: delegating(pool, turn))

    await first.stop()
    await watching

    answer = await pool.fetchval(
        "select parts from messages where thread_id = $1 and role = 'assistant'", turn.view.session_id
    )
    assert [activity["state"] for activity in activities({"parts": answer})] == ["stopped"]
    assert turn.ending["type"] == "error"


async def delegating(pool: Pool, turn: Watched) -> bool:
    """Whether the stored state of the turn holds what its specialist has said."""
    stored = await pool.fetchval("select checkpoint::text from turns where id = $1", turn.view.turn_id)
    return stored is not None and "I look around" in stored
