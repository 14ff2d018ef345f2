"""Credentials in what a person and a model say: executed as they are, stored and shown without."""

from __future__ import annotations

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import PatchSession, PatchSessionBody, SearchMessages
from popagent_proto.chat.turns import StartTurn
from popagent_telemetry import register_secret
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Door, user_message

pytestmark = pytest.mark.usefixtures("chat")

KEY = "sk-CANARY0123456789abcdef"
SHOWN = "sk-[redacted]"


async def test_what_a_person_says_is_read_stored_and_titled_without_credentials_and_the_same_request_is_the_same_turn(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    session, message_id, said = new_id(), new_id(), f"My key is {KEY}, keep it."

    first = await door.say(said, session, id=message_id)
    repeated = StartTurn(turn_id=new_id(), session_id=session, message=user_message(said, message_id))
    again = await door.ask(repeated)

    view = await door.session(session)
    assert view.messages[0]["parts"] == [{"type": "text", "text": f"My key is {SHOWN}, keep it."}]
    assert view.title == f"My key is {SHOWN}, keep it."
    assert again.turn_id == first.view.turn_id
    assert SHOWN in str(model.requests[-1].body["messages"][-1])
    assert KEY not in str(model.requests[-1].body)
    rows = await pool.fetch("select m::text as row from messages m union all select t::text from message_texts t")
    assert not any("canary0123" in row["row"].lower() for row in rows)


async def test_a_name_of_a_chat_has_no_credential(door: Door, pool: Pool) -> None:
    session = new_id()
    await door.say("Hello", session)

    body = PatchSessionBody(revision=0, title=f"About {KEY}")
    named = await door.ask(PatchSession(command_id=new_id(), session_id=session, body=body))

    [row] = await pool.fetch("select title, folded_title from sessions where id = $1", session)
    assert named.title == row["title"] == f"About {SHOWN}"
    assert "canary" not in row["folded_title"]


async def test_an_answer_is_written_again_from_what_is_stored(door: Door, model: ModelServer) -> None:
    session = new_id()
    model.script(Reply(text=f"It is {KEY}."), Reply(text="Again."), Reply(text="Yes."))
    first = await door.say(f"Is it {KEY}?", session)

    await door.say(None, session, trigger="regenerate-message", message_id=first.view.message_id)

    assert first.text == f"It is {SHOWN}."
    assert KEY not in str([request.body for request in model.requests])


async def test_an_intent_has_the_arguments_without_credentials(door: Door, model: ModelServer, pool: Pool) -> None:
    await pool.execute("create table if not exists kept_agents_of_secrets as table agents")
    await pool.execute(
        "update agents set workspace_access = 'read-write', tools = array['write'] where id = 'orchistrator'"
    )
    arguments = orjson.dumps({"path": f"{new_id()}.txt", "content": f"key {KEY}\npassword=CANARY0123\n"}).decode()
    model.script(Reply(tool_calls=(ScriptedCall("write", arguments),)), Reply(text="Written."))
    try:
        turn = await door.say("Write it down.", new_id())
    finally:
        await pool.execute("delete from agents")
        await pool.execute("insert into agents table kept_agents_of_secrets")
        await pool.execute("drop table kept_agents_of_secrets")

    [row] = await pool.fetch("select arguments from turn_intents where turn_id = $1", turn.view.turn_id)
    assert SHOWN in row["arguments"]
    assert "CANARY" not in row["arguments"]
    [part] = [part for part in turn.message["parts"] if part["type"] == "tool-write"]
    assert part["input"]["content"] == f"key {SHOWN}\npassword=[redacted]\n"


async def test_what_was_stored_before_a_value_was_known_is_shown_and_found_without_it(
    door: Door, model: ModelServer
) -> None:
    value, session = f"heron-{new_id()}", new_id()
    model.script(Reply(text=f"It said {value} loudly."))
    await door.say(f"Say {value}", session)

    assert value in str(await door.session(session))
    register_secret(value, "a late one")

    view = await door.session(session)
    hits = await door.ask(SearchMessages(session_id=session, q="loudly"))
    assert value not in str(view)
    assert "[redacted:a late one]" in view.title
    assert hits.items[0].excerpt == "It said [redacted:a late one] loudly."
