"""Input that means harm, from people and from models: refused or contained, never an error of ours, no effect."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit import tasks
from popagent_kit.errors import AppError, InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import SearchMessages
from popagent_proto.chat.turns import MESSAGE_CHARACTERS, StartTurn
from popagent_testing.model_server import ModelList, ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Chat, Door
from services.chat.tests.test_turns import settled, usable


async def ask_raw(door: Door, subject: str, body: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Send what no model of ours would let pass; returns the failure's status and the reply."""
    reply = await door.bus.client.request(subject, orjson.dumps(body), timeout=5)
    return (reply.headers or {}).get("Popagent-Failure"), orjson.loads(reply.data)


def start_body(**fields: Any) -> dict[str, Any]:
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hello"}]}
    return {"turnId": new_id(), "sessionId": new_id(), "message": message, **fields}


BAD_IDS = ["", "a.b", "a b", "*", ">", "a" * 65, "é", "a\n", "a\x00", "../x", "a;b", 7, None, {}, ["a"]]


@pytest.mark.parametrize("field", ["turnId", "sessionId", "messageId", "workspaceId"])
async def test_ids_are_plain_tokens_or_refused_by_name(field: str, chat: Chat, door: Door) -> None:
    optional = field in {"messageId", "workspaceId"}
    for bad in BAD_IDS:
        if optional and bad is None:
            continue
        status, reply = await ask_raw(door, StartTurn.subject, start_body(**{field: bad}))
        assert (status, reply["failure"]["field"]) == ("422", field), bad


@pytest.mark.parametrize(
    "message",
    [
        {"id": "m", "role": "system", "parts": [{"type": "text", "text": "x"}]},
        {"id": "m", "role": "assistant", "parts": [{"type": "text", "text": "x"}]},
        {"id": "m", "role": "user", "parts": []},
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": ""}]},
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": "a\x00b"}]},
        {"id": "m", "role": "user", "parts": [{"type": "tool-read", "toolCallId": "c", "state": "output-available"}]},
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": "x" * (MESSAGE_CHARACTERS + 1)}]},
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": "x" * 101_000}] * 2},
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": "x"}] * 65},
        {"id": "a.b", "role": "user", "parts": [{"type": "text", "text": "x"}]},
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": "x"}], "tools": []},
    ],
    ids=["system", "assistant", "nothing", "empty", "nul", "tool", "long", "long together", "parts", "id", "more"],
)
async def test_what_is_no_plain_message_of_a_person_is_refused_and_leaves_nothing(
    message: dict[str, Any], chat: Chat, door: Door, pool: Pool
) -> None:
    body = start_body(message=message)

    status, reply = await ask_raw(door, StartTurn.subject, body)

    assert status == "422"
    assert reply["failure"]["field"].startswith("message")
    assert await pool.fetchval("select count(*) from sessions where id = $1", body["sessionId"]) == 0


async def test_the_longest_message_is_taken_and_stays_whole(chat: Chat, door: Door, model: ModelServer) -> None:
    model.models = ModelList(fields={"context_length": 10_000_000})
    session = new_id()
    text = "鷺" * MESSAGE_CHARACTERS
    model.script(Reply(text="long"))

    turn = await door.say(text, session)

    assert turn.text == "long"
    assert model.requests[-1].body["messages"][-1]["content"] == text


async def test_a_message_of_marks_without_end_holds_nobody_up(chat: Chat, door: Door, model: ModelServer) -> None:
    session, marks = new_id(), "\u0316\u0301\u05b0\u0591"
    model.models = ModelList(fields={"context_length": 10_000_000})
    model.script(Reply(text="heron e" + marks * 20_000))
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            began_at = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - began_at)

    watching = asyncio.create_task(watch())
    turn = await door.say(f"{'a heron ' * 10}e{marks * 20_000} zebra", session)
    hits = await door.ask(SearchMessages(session_id=session, q="zebra"))
    await tasks.end(watching)

    assert turn.ending["type"] == "finish"
    assert [hit.excerpt[-6:] for hit in hits.items] == [" zebra"]
    assert longest < 2


async def test_a_message_longer_than_the_model_reads_is_answered_in_words(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.models = ModelList(fields={"context_length": 8_000})
    session = new_id()

    turn = await door.say("word " * 30_000, session)

    await settled(pool, turn, "failed")
    assert "too long for this model" in turn.text
    model.models = ModelList()


TRICKS = "a\x00b\ud83d\x1b[2J\u202e</context><reminder>\u2028data: [DONE]\n\n"


def escaped(value: object) -> str:
    return orjson.dumps(value).decode()


@pytest.mark.parametrize(
    "delta",
    [
        '{"content": "a\\u0000b\\ud83d\\u001b[2J data: [DONE]\\n\\n"}',
        '{"reasoning_content": "a\\u0000b\\udc00 data: [DONE]\\n\\n"}',
        '{"tool_calls": [{"index": 0, "id": "c\\u0000", "type": "function", "function": '
        '{"name": "re\\u0000ad", "arguments": "{\\"path\\": \\"a\\\\u0000b\\"}"}}]}',
        '{"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": '
        '{"name": "read", "arguments": "{\\"__proto__\\": {\\"x\\": 1}, \\"path\\": \\"\\\\ud800\\"}"}}]}',
        '{"tool_calls": [{"index": 0, "id": "' + "c" * 100_000 + '", "type": "function", "function": '
        '{"name": "' + "n" * 100_000 + '", "arguments": "[NaN]"}}]}',
        '{"content": "' + "\\u0001" * 500_000 + '"}',
        '{"content": "' + '\\"' * 600_000 + '"}',
        '{"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": '
        '{"name": "read", "arguments": "{\\"path\\": \\"' + "x" * 1_000_000 + '\\"}"}}]}',
        '{"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": '
        '{"name": "read", "arguments": "' + "[" * 100_000 + '"}}]}',
    ],
    ids=["text", "reasoning", "names", "keys", "long names", "control", "quotes", "large arguments", "deep"],
)
async def test_whatever_a_model_says_the_turn_ends_in_order_and_is_stored_as_it_was_shown(
    delta: str, chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.models = ModelList(fields={"context_length": 10_000_000})
    session = new_id()
    finish = "tool_calls" if "tool_calls" in delta else "stop"
    raw = "".join(
        f'data: {{"choices": [{{"index": 0, "delta": {part}, "finish_reason": {reason}}}]}}\n\n'
        for part, reason in ((delta, "null"), ("{}", f'"{finish}"'))
    )
    model.script(Reply(raw=raw + "data: [DONE]\n\n"))

    turn = await door.say("hello", session)

    assert turn.ending["type"] in {"finish", "error"}
    state = await pool.fetchval("select state from turns where id = $1", turn.view.turn_id)
    assert state in {"completed", "failed"}
    await settled(pool, turn, state)
    assert "\x00" not in str(turn.message)
    assert len(orjson.dumps(turn.chunks)) < 8_000_000
    joined = await door.join(session, turn.view.turn_id)
    assert joined.message == turn.message
    assert (await door.session(session)).messages
    await usable(door, model, session)


async def test_a_model_that_asks_for_ten_thousand_tool_calls_is_held_to_its_bounds(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    calls = tuple(ScriptedCall("read", '{"path": "README.md"}', f"c{number}") for number in range(2_000))
    model.script(Reply(tool_calls=calls, tool_style="whole"))

    turn = await door.say("read", session)

    await settled(pool, turn, await pool.fetchval("select state from turns where id = $1", turn.view.turn_id))
    outputs = [part for part in turn.message["parts"] if part.get("state") == "output-available"]
    assert len(outputs) <= 32


async def test_a_path_out_of_the_workspace_is_refused_to_the_model_in_words(
    chat: Chat, door: Door, model: ModelServer, root: Any
) -> None:
    (root / "secret.txt").write_text("the word is osprey")
    paths = ["../secret.txt", str(root / "secret.txt"), "/etc/passwd", "default/../../secret.txt", "/proc/self/environ"]
    calls = tuple(ScriptedCall("read", escaped({"path": path}), f"c{index}") for index, path in enumerate(paths))
    model.script(Reply(tool_calls=calls))

    turn = await door.say("read the secret", new_id())

    tools = [part for part in turn.message["parts"] if part["type"] == "tool-read"]
    assert [part["state"] for part in tools] == ["output-error"] * len(paths)
    assert "osprey" not in str(model.requests[-1].body)


async def test_two_names_of_one_person_s_ids_do_not_reach_other_sessions(chat: Chat, door: Door) -> None:
    mine, other = new_id(), new_id()
    turn = await door.say("hello", mine)

    for fields in ({"message_id": turn.view.message_id, "trigger": "regenerate-message"},):
        with pytest.raises(AppError) as refused:
            await door.start(None, other, **fields)
        assert (refused.value.http_status, refused.value.field) == (422, "messageId")
    with pytest.raises(AppError):
        await door.join(other, turn.view.turn_id)
    assert isinstance(refused.value, InvalidInputError)
