"""Branches: which messages have siblings, which branch is shown, and what is refused from whoever shows another."""

from __future__ import annotations

from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import GetSession, SessionView, SetHead, SetHeadBody
from popagent_testing.model_server import ModelServer, Reply
from services.chat.tests.running import Door

pytestmark = pytest.mark.usefixtures("chat")


def texts(view: SessionView) -> list[str]:
    return [message["parts"][-1]["text"] for message in view.messages]


def siblings(view: SessionView) -> list[list[str] | None]:
    return [message["metadata"].get("siblings") for message in view.messages]


async def show(door: Door, session: str, message: str, revision: int | None = None) -> SessionView:
    if revision is None:
        revision = (await door.session(session)).revision
    body = SetHeadBody(revision=revision, message_id=message)
    view: SessionView = await door.ask(SetHead(command_id=new_id(), session_id=session, body=body))
    return view


async def refused(door: Door, message: Any) -> AppError:
    with pytest.raises(AppError) as error:
        await door.ask(message)
    return error.value


async def forked(door: Door, model: ModelServer) -> tuple[str, list[str]]:
    """Return a session and the ids of: question, first answer, second question below it, a second answer to the first.

    The branch of the second answer is shown.
    """
    session, question, further = new_id(), new_id(), new_id()
    model.script(Reply(text="one"), Reply(text="further"), Reply(text="two"))
    first = await door.say("question", session, id=question)
    await door.say("and then?", session, id=further)
    second = await door.say(None, session, trigger="regenerate-message", message_id=first.view.message_id)
    return session, [question, first.view.message_id, further, second.view.message_id]


async def test_a_message_with_siblings_names_them_in_order_and_the_others_carry_nothing(
    door: Door, model: ModelServer
) -> None:
    session, (question, first, further, second) = await forked(door, model)
    model.script(Reply(text="three"))
    edited = await door.say("question, edited", session, message_id=question, id=new_id())

    view = await door.session(session)
    of_the_old = await show(door, session, question)

    assert texts(view) == ["question, edited", "three"]
    assert siblings(view) == [[question, view.messages[0]["id"]], None]
    assert view.messages[1]["id"] == edited.view.message_id
    assert texts(of_the_old) == ["question", "two"]
    assert siblings(of_the_old) == [[question, view.messages[0]["id"]], [first, second]]
    assert further not in str(of_the_old)


async def test_switching_shows_the_branch_down_to_its_newest_end_and_tells_the_other_tabs(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    session, (_, first, further, second) = await forked(door, model)
    before = await door.session(session)

    old = await show(door, session, first)
    again = await show(door, session, further)
    back = await show(door, session, second)

    assert (before.last_turn_state, old.last_turn_state) == ("completed", None)
    assert texts(old) == ["question", "one", "and then?", "further"]
    assert siblings(old) == [None, [first, second], None, None]
    assert (old.revision, again.revision, back.revision) == (1, 1, 2)
    assert texts(back) == texts(before) == ["question", "two"]
    assert back.updated_at == before.updated_at
    told = await pool.fetch(
        "select payload::jsonb->'session'->>'revision' as revision from outbox "
        "where aggregate_id = $1 and subject like '%sessions-changed%' order by position",
        session,
    )
    assert [row["revision"] for row in told] == ["1", "2"]
    model.script(Reply(text="on"))
    await door.say("go on", session)
    said = [(message["role"], message["content"]) for message in model.requests[-1].body["messages"][1:]]
    assert said == [("user", "question"), ("assistant", "two"), ("user", "go on")]


async def test_switching_is_refused_with_an_old_revision_a_foreign_message_and_while_a_turn_runs(
    door: Door, model: ModelServer
) -> None:
    session, (_, first, _, second) = await forked(door, model)
    other, (_, foreign, _, _) = await forked(door, model)
    assert other != session

    old = await refused(door, SetHead(command_id=new_id(), session_id=session, body=at(7, first)))
    not_ours = await refused(door, SetHead(command_id=new_id(), session_id=session, body=at(0, foreign)))
    unknown = await refused(door, SetHead(command_id=new_id(), session_id=new_id(), body=at(0, first)))
    model.script(Reply(text="one two", after=1, hold=True))
    turn = await door.start("more", session)
    await turn.read(until="one")
    running = await refused(door, SetHead(command_id=new_id(), session_id=session, body=at(0, first)))
    model.release()
    await turn.read()

    assert (old.http_status, old.code) == (409, "revision_conflict")
    assert [message["id"] for message in old.extra["session"]["messages"]][-1] == second
    assert (not_ours.http_status, not_ours.field) == (422, "messageId")
    assert unknown.http_status == 404
    assert (running.http_status, running.code) == (409, "turn_running")
    assert texts(await door.session(session))[-2:] == ["more", "one two"]


def at(revision: int, message: str) -> SetHeadBody:
    return SetHeadBody(revision=revision, message_id=message)


async def test_a_message_of_a_tab_that_shows_another_branch_is_refused_and_nothing_is_stored(
    door: Door, model: ModelServer
) -> None:
    session, (question, first, further, _) = await forked(door, model)
    shown = await door.session(session)

    for seen in ([first, question], [further], [], ["never-stored"]):
        with pytest.raises(AppError) as error:
            await door.start("go on", session, seen=seen)
        assert (error.value.http_status, error.value.code) == (409, "branch_changed"), seen
        assert error.value.extra["session"]["id"] == session

    assert await door.session(session) == shown


async def test_a_message_follows_what_its_client_shows(door: Door, model: ModelServer) -> None:
    session = new_id()
    model.script(*(Reply(text=str(number)) for number in range(5)))

    first = await door.say("a", session, seen=[])
    second = await door.say("b", session, seen=[first.view.message_id, "x"])
    of_unknown = await door.say("c", session, seen=["never-stored", second.view.message_id])
    # The client was gone before its own message was answered, and never saw the answer.
    unseen_answer = await door.say("d", session, seen=[(await door.session(session)).messages[-2]["id"]])
    greeted = await door.say("hello", new_id(), seen=["a-greeting-of-the-page"])

    assert texts(await door.session(session)) == ["a", "0", "b", "1", "c", "2", "d", "3"]
    assert (of_unknown.text, unseen_answer.text) == ("2", "3")
    assert greeted.text == "4"


async def test_a_regeneration_answers_what_its_client_shows_last(door: Door, model: ModelServer) -> None:
    session, (question, first, further, _) = await forked(door, model)
    model.script(Reply(text="other further"), Reply(text="to the new"))

    # The head is on the other branch; the client shows "and then?" last.
    again = await door.say("and then?", session, id=further, trigger="regenerate-message")
    view = await door.session(session)
    with pytest.raises(AppError) as error:
        await door.start("what?", session, id=question, trigger="regenerate-message")
    # Its message was refused when it was sent first.
    new = await door.say("one more", session, trigger="regenerate-message", seen=[again.view.message_id])

    assert texts(view) == ["question", "one", "and then?", "other further"]
    assert view.messages[1]["id"] == first
    assert error.value.code == "branch_changed"
    assert new.text == "to the new"
    assert texts(await door.session(session)) == [*texts(view), "one more", "to the new"]


async def page(door: Door, session: str, **where: Any) -> SessionView:
    view: SessionView = await door.ask(GetSession(session_id=session, **where))
    return view


async def test_a_page_around_a_message_leads_on_in_both_directions(door: Door, model: ModelServer) -> None:
    session, ids = new_id(), [new_id() for _ in range(6)]
    for number, message in enumerate(ids):
        await door.say(f"say {number}", session, id=message)
    whole = [message["id"] for message in (await page(door, session)).messages]

    middle = await page(door, session, around=ids[2], limit=4)
    newer = await page(door, session, after=middle.next_cursor, limit=4)
    newest = await page(door, session, after=newer.next_cursor, limit=4)
    older = await page(door, session, before=middle.previous_cursor, limit=4)
    at_the_ends = [await page(door, session, around=ids[0], limit=4), await page(door, session, around=whole[-1])]

    def shown(view: SessionView) -> list[str]:
        return [message["id"] for message in view.messages]

    assert ids[2] in shown(middle)
    assert [*shown(older), *shown(middle), *shown(newer), *shown(newest)] == whole
    assert (older.previous_cursor, newest.next_cursor) == (None, None)
    assert (await page(door, session)).next_cursor is None
    assert [view.previous_cursor for view in at_the_ends] == [None, None]
    assert shown(at_the_ends[0]) == whole[:3]
    assert shown(at_the_ends[1]) == whole
    assert (await page(door, session, after=whole[-1])).messages == []


async def test_places_that_cannot_be_shown_are_named(door: Door, model: ModelServer) -> None:
    session, (_, first, _, second) = await forked(door, model)

    unknown = await refused(door, GetSession(session_id=session, around="nothing"))
    two = await refused(door, GetSession(session_id=session, around=second, before=second))
    elsewhere = [await refused(door, GetSession(session_id=session, **{name: first})) for name in ("around", "after")]

    assert (unknown.http_status, unknown.field) == (422, "around")
    assert (two.http_status, two.field) == (422, "around")
    assert [(error.http_status, error.code) for error in elsewhere] == [(409, "other_branch")] * 2
