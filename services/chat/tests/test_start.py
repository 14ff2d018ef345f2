"""Beginning a turn: what is stored, what is refused, and what is the same request again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import PatchSession, PatchSessionBody
from popagent_proto.chat.turns import StartTurn, StopTurn
from popagent_proto.chat.workspaces import RegisterWorkspace, RegisterWorkspaceBody
from popagent_testing.model_server import ModelList, ModelServer, Reply
from popagent_testing.suite_bus import until
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, user_message

pytestmark = pytest.mark.usefixtures("chat")


async def refusal(door: Door, text: str | None, session: str, **fields: Any) -> AppError:
    """Start a turn that must be refused, and return why."""
    with pytest.raises(AppError) as refused:
        await door.start(text, session, **fields)
    return refused.value


def said(model: ModelServer) -> list[tuple[str, str]]:
    """Role and text of what the model was last sent, the system text left out."""
    return [(message["role"], message["content"]) for message in model.requests[-1].body["messages"][1:]]


async def test_an_unknown_id_creates_the_session_and_takes_its_title_from_the_first_message(
    door: Door, pool: Pool
) -> None:
    session = new_id()

    await door.say("  What\n is " + "a heron " * 20, session)
    await door.say("And a second question?", session)

    view = await door.session(session)
    assert view.title == ("What is " + "a heron " * 20)[:59].rstrip() + "…"
    assert (view.workspace_id, view.title_locked, view.revision) == ("default", False, 0)
    assert [message["role"] for message in view.messages] == ["user", "assistant"] * 2
    threads = await pool.fetch("select kind, resource from threads where id = $1", session)
    assert [tuple(row) for row in threads] == [("session", "popagent-user")]


async def test_the_same_turn_id_and_the_same_message_are_the_same_turn(door: Door, model: ModelServer) -> None:
    session, message = new_id(), new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session, id=message)
    await turn.read(until="two")

    by_turn = await door.ask(
        StartTurn(turn_id=turn.view.turn_id, session_id=session, message=user_message("count", message))
    )
    by_message = await door.ask(StartTurn(turn_id=new_id(), session_id=session, message=user_message("count", message)))
    joined = await door.join(session, by_message.turn_id)
    model.release()
    await asyncio.gather(turn.read(), joined.read())
    after = await door.ask(StartTurn(turn_id=new_id(), session_id=session, message=user_message("count", message)))
    ended = await door.join(session, after.turn_id)

    assert {by_turn.turn_id, by_message.turn_id, after.turn_id} == {turn.view.turn_id}
    assert [by_turn.created, by_message.created, after.created] == [False] * 3
    assert joined.message == turn.message == ended.message
    assert (after.state, ended.ending) == ("completed", turn.ending)
    assert len(model.requests) == 1


async def test_a_turn_id_of_another_session_is_refused(door: Door) -> None:
    turn = await door.say("hello", new_id())

    error = await refusal(door, "hello", new_id(), turn_id=turn.view.turn_id)

    assert (error.http_status, error.field) == (409, "turnId")


async def test_a_turn_id_that_was_used_for_another_message_is_refused(door: Door) -> None:
    session, question = new_id(), new_id()
    first = await door.say("hello", session, id=question)
    used = first.view.turn_id

    errors = [
        await refusal(door, "good bye", session, turn_id=used),
        await refusal(door, "good bye", session, turn_id=used, id=question),
        await refusal(door, "hello", session, turn_id=used),
        await refusal(door, "good bye", session, turn_id=used, message_id=question),
        await refusal(
            door, None, session, turn_id=used, trigger="regenerate-message", message_id=first.view.message_id
        ),
    ]

    assert {(error.http_status, error.field) for error in errors} == {(409, "turnId")}
    assert len(await door.stored(session)) == 2


async def test_an_edit_and_a_new_answer_are_the_same_turn_when_they_are_asked_for_again(door: Door) -> None:
    session, question = new_id(), new_id()
    first = await door.say("hello", session, id=question)
    requests: list[dict[str, Any]] = [
        {"message": user_message("hello, edited", question), "message_id": question},
        {"message": user_message("hello, edited again"), "message_id": question},
        {"message": None, "trigger": "regenerate-message", "message_id": first.view.message_id},
        {"message": None, "trigger": "regenerate-message"},
        {"message": user_message("another"), "trigger": "regenerate-message", "seen": None},
    ]

    for request in requests:
        command = StartTurn(turn_id=new_id(), session_id=session, **request)
        begun = await door.ask(command)
        await (await door.join(session, begun.turn_id)).read()
        again = await door.ask(command)

        assert (begun.created, again.created) == (True, False)
        assert again.turn_id == begun.turn_id


async def test_one_turn_id_in_many_sessions_at_the_same_moment_belongs_to_one(door: Door, model: ModelServer) -> None:
    for _ in range(3):
        turn_id = new_id()
        commands = [
            StartTurn(turn_id=turn_id, session_id=new_id(), message=user_message(f"hello {n}")) for n in range(6)
        ]

        results = await asyncio.gather(*map(door.ask, commands), return_exceptions=True)

        [won] = [result for result in results if not isinstance(result, BaseException)]
        lost = [result for result in results if isinstance(result, AppError)]
        assert [(error.http_status, error.field) for error in lost] == [(409, "turnId")] * 5
        await (await door.join(won.session_id, turn_id)).read()


async def test_a_known_message_id_with_other_content_is_refused_and_stored_messages_stay(door: Door) -> None:
    session, message = new_id(), new_id()
    turn = await door.say("hello", session, id=message)

    changed = await refusal(door, "good bye", session, id=message)
    of_the_answer = await refusal(door, "good bye", session, id=turn.view.message_id)

    assert {(error.http_status, error.field) for error in (changed, of_the_answer)} == {(422, "message.id")}
    assert len(await door.stored(session)) == 2


@pytest.mark.parametrize("as_sdk", [True, False], ids=["the official client's ids", "a new id"])
async def test_an_edit_makes_a_sibling_branch_and_the_prompt_knows_nothing_of_the_other(
    as_sdk: bool, door: Door, model: ModelServer, pool: Pool
) -> None:
    session, first, second = new_id(), new_id(), new_id()
    await door.say("question one", session, id=first)
    await door.say("question two", session, id=second)

    edited = await door.say("question two, edited", session, message_id=second, id=second if as_sdk else new_id())

    view = await door.stored(session)
    assert [message["parts"][-1]["text"] for message in view] == [
        "question one",
        "question one",
        "question two, edited",
        "question two, edited",
    ]
    assert view[3] == edited.message
    assert said(model) == [
        ("user", "question one"),
        ("assistant", "question one"),
        ("user", "question two, edited"),
    ]
    kept = await pool.fetchval("select parts from messages where thread_id = $1 and id = $2", session, second)
    assert kept == [{"type": "text", "text": "question two"}]


async def test_an_edit_of_what_is_no_message_of_a_person_is_refused(door: Door) -> None:
    session = new_id()
    turn = await door.say("hello", session)

    errors = [await refusal(door, "x", session, message_id=name) for name in (turn.view.message_id, "nothing")]

    assert [(error.http_status, error.field) for error in errors] == [(422, "messageId")] * 2


async def test_regenerating_answers_again_without_the_old_answer_in_the_prompt(door: Door, model: ModelServer) -> None:
    session = new_id()
    model.script(Reply(text="first"), Reply(text="second"), Reply(text="third"), Reply(text="fourth"))
    first = await door.say("question", session)

    last = await door.say(None, session, trigger="regenerate-message")
    by_answer = await door.say(None, session, trigger="regenerate-message", message_id=first.view.message_id)
    question = (await door.stored(session))[0]["id"]
    by_question = await door.say("ignored", session, trigger="regenerate-message", message_id=question)

    assert [turn.text for turn in (last, by_answer, by_question)] == ["second", "third", "fourth"]
    assert said(model) == [("user", "question")]
    assert [message["parts"][-1]["text"] for message in await door.stored(session)] == ["question", "fourth"]


async def test_nothing_to_regenerate_is_refused(door: Door) -> None:
    session = new_id()

    empty = await refusal(door, None, session, trigger="regenerate-message")
    await door.say("hello", session)
    unknown = await refusal(door, None, session, trigger="regenerate-message", message_id="unknown")

    assert [(error.http_status, error.field) for error in (empty, unknown)] == [(422, "messageId")] * 2


async def test_while_a_turn_runs_nothing_else_begins_in_its_session(door: Door, model: ModelServer) -> None:
    session, message = new_id(), new_id()
    model.script(Reply(text="one two", after=1, hold=True))
    turn = await door.start("hello", session, id=message)
    await turn.read(until="one")

    errors = [
        await refusal(door, "another", session),
        await refusal(door, "edited", session, message_id=message),
        await refusal(door, None, session, trigger="regenerate-message"),
    ]

    assert {(error.http_status, error.code) for error in errors} == {(409, "turn_running")}
    assert errors[0].extra == {"turnId": turn.view.turn_id}
    model.release()
    await turn.read()
    assert len(await door.stored(session)) == 2


async def test_an_archived_session_takes_no_message(door: Door) -> None:
    session = new_id()
    await door.say("hello", session)
    body = PatchSessionBody(revision=0, archived=True)
    await door.ask(PatchSession(command_id=new_id(), session_id=session, body=body))

    error = await refusal(door, "more", session)

    assert (error.http_status, error.code) == (409, "session_archived")
    assert error.extra["session"]["id"] == session


async def test_the_workspace_is_checked_and_stays_the_session_s(door: Door, root: Any) -> None:
    (root / "other").mkdir()
    body = RegisterWorkspaceBody(name="Other", path="other")
    other = await door.ask(RegisterWorkspace(command_id=new_id(), body=body))
    session = new_id()
    await door.say("hello", session, workspace_id=other.id)

    unknown = await refusal(door, "hello", new_id(), workspace_id="nowhere")
    moved = await refusal(door, "more", session, workspace_id="default")
    await door.say("more", session, workspace_id=other.id)

    assert [(error.http_status, error.field) for error in (unknown, moved)] == [(422, "workspaceId")] * 2
    assert (await door.session(session)).workspace_id == other.id


async def test_a_model_is_checked_against_the_catalogue_and_used(
    door: Door, model: ModelServer, start: StartChat
) -> None:
    model.models = ModelList(ids=("scripted-model", "another-model"))

    error = await refusal(door, "hello", new_id(), model="no-such-model")
    turn = await door.say("hello", new_id(), model="another-model")

    assert (error.http_status, error.field) == (422, "model")
    assert model.requests[-1].body["model"] == "another-model"
    assert turn.message["metadata"]["model"] == "another-model"


async def test_without_a_catalogue_any_well_formed_model_is_taken_with_a_warning(
    door: Door, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    model.models = ModelList(status=500)

    turn = await door.say("hello", new_id(), model="some-model")
    error = await refusal(door, "hello", new_id(), model="some model")

    assert turn.text == "hello"
    assert "the model catalogue could not be read" in caplog.text
    assert (error.http_status, error.field) == (422, "model")


async def test_of_two_turns_at_the_same_moment_in_one_new_session_exactly_one_wins(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    for _ in range(5):
        session = new_id()
        model.script(Reply(text="one", hold=True))

        results = await asyncio.gather(door.start("one", session), door.start("two", session), return_exceptions=True)

        won = [result for result in results if not isinstance(result, BaseException)]
        lost = [result for result in results if isinstance(result, AppError)]
        assert (len(won), [error.code for error in lost]) == (1, ["turn_running"])
        await model.until(lambda server: server.held == 1)
        model.release()
        await won[0].read()
        assert await pool.fetchval("select count(*) from turns where session_id = $1", session) == 1
        assert len(await door.stored(session)) == 2


async def test_the_same_request_at_the_same_moment_is_one_turn(door: Door, model: ModelServer) -> None:
    session, message = new_id(), new_id()
    command = [
        StartTurn(turn_id=new_id(), session_id=session, message=user_message("hello", message)) for _ in range(5)
    ]

    views = await asyncio.gather(*map(door.ask, command))

    assert len({view.turn_id for view in views}) == 1
    assert sum(view.created for view in views) == 1
    await (await door.join(session, views[0].turn_id)).read()
    assert len(model.requests) == 1


@asynccontextmanager
async def renamed_meanwhile(pool: Pool, session: str) -> AsyncIterator[None]:
    """Change the session in the block, and commit that when somebody waits for it."""
    async with pool.acquire() as conn, pool.acquire() as watching:
        change = conn.transaction()
        await change.start()
        await conn.execute(
            "update sessions set title = 'mine', title_locked = true, version = version + 1 where id = $1", session
        )

        async def somebody_waits() -> bool:
            waiting = "select exists (select 1 from pg_locks where locktype = 'transactionid' and not granted)"
            return bool(await watching.fetchval(waiting))

        try:
            yield
            await until(somebody_waits)
        finally:
            await change.commit()


async def told(pool: Pool, turn_id: str) -> list[tuple[str, str | None]]:
    """Title and running turn of the session in each event of the turn."""
    rows = await pool.fetch("select payload from outbox where aggregate_id = $1 order by position", turn_id)
    sessions = [orjson.loads(row["payload"])["session"] for row in rows]
    return [(session["title"], session["runningTurnId"]) for session in sessions]


async def test_a_session_that_changes_while_a_turn_starts_and_ends_keeps_the_change_and_gets_the_turn(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    await door.say("hello", session)
    version = await pool.fetchval("select version from sessions where id = $1", session)
    model.script(Reply(text="one two three", after=2, hold=True))

    async with renamed_meanwhile(pool, session):
        starting = asyncio.create_task(door.start("count", session))
    turn = await starting
    await turn.read(until="two")
    await pool.execute("update sessions set title = 'a name' where id = $1", session)
    async with renamed_meanwhile(pool, session):
        model.release()
    await turn.read()

    assert [message["role"] for message in await door.stored(session)] == ["user", "assistant"] * 2
    assert (await door.stored(session))[3] == turn.message
    assert await told(pool, turn.view.turn_id) == [("mine", turn.view.turn_id), ("mine", None)]
    assert await pool.fetchval("select version from sessions where id = $1", session) == version + 4


async def test_twenty_turns_at_once_in_as_many_sessions_all_end_with_their_own_answer(door: Door) -> None:
    texts = [f"message number {number}" for number in range(20)]

    turns = await asyncio.gather(*(door.say(text, new_id()) for text in texts))

    assert [turn.text for turn in turns] == texts
    assert {turn.ending["type"] for turn in turns} == {"finish"}


async def test_a_turn_without_a_free_slot_waits_and_runs_then(
    chat: Chat, door: Door, model: ModelServer, start: StartChat
) -> None:
    await chat.stop()
    await start(turn_slots=1)
    model.script(Reply(text="first", after=0, hold=True))
    first = await door.start("first", new_id())
    await model.until(lambda server: server.held == 1)
    second = await door.start("second", new_id())

    assert second.view.state == "queued"
    model.release()
    await asyncio.gather(first.read(), second.read())
    assert (first.text, second.text) == ("first", "second")


async def test_a_queued_turn_that_is_stopped_ends_without_a_word(
    chat: Chat, door: Door, model: ModelServer, start: StartChat
) -> None:
    await chat.stop()
    await start(turn_slots=1)
    model.script(Reply(text="first", after=0, hold=True))
    first = await door.start("first", new_id())
    await model.until(lambda server: server.held == 1)
    session = new_id()
    second = await door.start("second", session)

    await door.ask(StopTurn(session_id=session))
    model.release()
    await asyncio.gather(first.read(), second.read())

    assert second.ending["type"] == "abort"
    assert second.text == ""
    assert (await door.stored(session))[1] == second.message
    assert len(model.requests) == 1
