"""Sessions: listed, created, renamed, archived, shortened, deleted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from popagent_chat.sessions import delete as deleting
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import (
    CreateSession,
    CreateSessionBody,
    DeleteSession,
    GetSession,
    ListSessions,
    MessageRef,
    PatchSession,
    PatchSessionBody,
    SaveSession,
    SaveSessionBody,
    SessionView,
)
from popagent_proto.chat.workspaces import RegisterWorkspace, RegisterWorkspaceBody
from popagent_testing.model_server import ModelList, ModelServer, Reply
from services.chat.tests.running import Door, refusal

pytestmark = pytest.mark.usefixtures("chat")


async def create(door: Door, **body: Any) -> SessionView:
    view: SessionView = await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(**body)))
    return view


async def save(door: Door, session: str, revision: int, *, title: str | None = None, kept: Any = None) -> SessionView:
    refs = None if kept is None else [MessageRef(id=name) for name in kept]
    body = SaveSessionBody(revision=revision, title=title, messages=refs)
    view: SessionView = await door.ask(SaveSession(command_id=new_id(), session_id=session, body=body))
    return view


async def patch(door: Door, session: str, revision: int, **body: Any) -> SessionView:
    command = PatchSession(command_id=new_id(), session_id=session, body=PatchSessionBody(revision=revision, **body))
    view: SessionView = await door.ask(command)
    return view


async def test_a_created_session_is_found_again_by_its_command_and_refused_by_its_id(door: Door) -> None:
    command = CreateSession(command_id=new_id(), body=CreateSessionBody(title="Herons"))

    first = await door.ask(command)
    again = await door.ask(command)
    taken = await refusal(create(door, id=first.id))
    nowhere = await refusal(create(door, workspace_id="nowhere"))

    assert first == again
    assert (first.title, first.title_locked, first.messages) == ("Herons", True, [])
    assert (taken.http_status, taken.code, taken.extra["session"]["id"]) == (409, "session_exists", first.id)
    assert (nowhere.http_status, nowhere.field) == (422, "workspaceId")


async def test_the_key_of_one_session_makes_no_other_and_loses_none(door: Door, root: Any) -> None:
    (root / "elsewhere").mkdir()
    elsewhere = await door.ask(
        RegisterWorkspace(command_id=new_id(), body=RegisterWorkspaceBody(name="Elsewhere", path="elsewhere"))
    )
    titled = CreateSession(command_id=new_id(), body=CreateSessionBody(title="Herons"))
    plain = CreateSession(command_id=new_id(), body=CreateSessionBody())
    await door.ask(titled)
    first = await door.ask(plain)
    await door.say("About herons", first.id)  # which gives the session a title of its own

    others = [
        await refusal(door.ask(CreateSession(command_id=made.command_id, body=CreateSessionBody(**body))))
        for made in (titled, plain)
        for body in ({"title": "Egrets"}, {"title": made.body.title, "workspace_id": elsewhere.id})
    ]

    assert [(error.http_status, error.code) for error in others] == [(409, "key_used")] * 4
    assert (await door.ask(plain)).id == first.id


async def test_the_list_is_filtered_and_paged_over_rows_of_the_same_moment(door: Door, pool: Pool, root: Any) -> None:
    (root / "listed").mkdir()
    workspace = await door.ask(
        RegisterWorkspace(command_id=new_id(), body=RegisterWorkspaceBody(name="Listed", path="listed"))
    )
    created = [(await create(door, workspace_id=workspace.id)).id for _ in range(11)]
    archived = [name for name in created[:3] if await patch(door, name, 0, archived=True)]
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    await pool.execute("update sessions set updated_at = $1 where workspace_id = $2", moment, workspace.id)

    pages = []
    cursor = None
    while True:
        query = ListSessions(workspace_id=workspace.id, cursor=cursor, limit=3)
        page = await door.ask(query)
        pages.append([row.id for row in page.items])
        cursor = page.next_cursor
        if cursor is None:
            break
    away = await door.ask(ListSessions(workspace_id=workspace.id, archived=True))

    assert [len(page) for page in pages] == [3, 3, 2]
    assert [name for page in pages for name in page] == sorted(created[3:], reverse=True)
    assert {row.id for row in away.items} == set(archived)
    assert all(row.archived_at is not None for row in away.items)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "é", "MjAyNi0wMS0wMXw=", "MDAwMS0wMS0wMVQwMDowMDowMCsxNDowMHxh", "\x00", "Z" * 4_000, "====", "fA=="],
)
async def test_a_cursor_that_no_list_answered_is_refused(door: Door, cursor: str) -> None:
    error = await refusal(door.ask(ListSessions(cursor=cursor)))

    assert (error.http_status, error.field) == (422, "cursor")


async def test_a_person_s_name_for_a_session_survives_later_messages(door: Door) -> None:
    session = new_id()
    await door.say("first", session)

    renamed = await patch(door, session, 0, title="My herons")
    await door.say("second", session)

    assert (renamed.title, renamed.title_locked, renamed.revision) == ("My herons", True, 1)
    assert (await door.session(session)).title == "My herons"


async def test_a_turn_does_not_raise_the_revision_and_a_stale_one_is_answered_with_the_session(door: Door) -> None:
    session = new_id()
    await door.say("hello", session)
    await patch(door, session, 0, title="one")

    errors = [
        await refusal(patch(door, session, 0, title="two")),
        await refusal(save(door, session, 0, title="two")),
        await refusal(save(door, session, 7, kept=[])),
    ]

    for error in errors:
        assert (error.http_status, error.code, error.message) == (409, "revision_conflict", "revision conflict")
        assert (error.extra["session"]["title"], error.extra["session"]["revision"]) == ("one", 1)
        assert len(error.extra["session"]["messages"]) == 2


async def test_archiving_and_restoring(door: Door) -> None:
    session = (await create(door)).id

    archived = await patch(door, session, 0, archived=True)
    restored = await patch(door, session, 1, archived=False)

    assert archived.archived_at is not None
    assert (restored.archived_at, restored.revision) == (None, 2)


async def test_shortening_moves_the_head_deletes_nothing_and_the_next_turn_goes_on_from_there(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    for text in ("one", "two"):
        await door.say(text, session)
    ids = [message["id"] for message in await door.stored(session)]

    shortened = await save(door, session, 0, kept=ids[:2], title="shorter")
    await door.say("three", session)

    assert [message["id"] for message in shortened.messages] == ids[:2]
    assert (shortened.revision, shortened.title) == (1, "shorter")
    said = [message["content"] for message in model.requests[-1].body["messages"][1:]]
    assert said == ["one", "one", "three"]
    assert await pool.fetchval("select count(*) from messages where thread_id = $1", session) == 6


async def test_only_a_prefix_of_the_stored_messages_is_kept(door: Door) -> None:
    session = new_id()
    for text in ("one", "two"):
        await door.say(text, session)
    ids = [message["id"] for message in await door.stored(session)]

    for kept in ([ids[1]], ids[::-1], [ids[0], ids[2]], ["unknown"], [*ids, "one-more"]):
        error = await refusal(save(door, session, 0, kept=kept))
        assert (error.http_status, error.field) == (422, "messages")

    assert (await save(door, session, 0, kept=[])).messages == []
    assert (await door.session(session)).messages == []


async def test_what_a_client_sends_beside_the_id_of_a_message_is_dropped(door: Door) -> None:
    session = new_id()
    await door.say("one", session)
    before = await door.stored(session)
    claimed = [{**message, "parts": [{"type": "text", "text": "forged"}]} for message in before]
    body = SaveSessionBody.model_validate({"revision": 0, "messages": claimed})

    after = await door.ask(SaveSession(command_id=new_id(), session_id=session, body=body))

    assert after.messages == before


async def test_while_a_turn_runs_a_session_is_renamed_but_neither_shortened_nor_archived(
    door: Door, model: ModelServer
) -> None:
    session = new_id()
    model.script(Reply(text="one two", after=1, hold=True))
    turn = await door.start("hello", session)
    await turn.read(until="one")

    errors = [await refusal(save(door, session, 0, kept=[])), await refusal(patch(door, session, 0, archived=True))]
    renamed = await patch(door, session, 0, title="busy")

    assert {(error.http_status, error.code) for error in errors} == {(409, "turn_running")}
    assert errors[0].extra["session"]["runningTurnId"] == turn.view.turn_id
    assert renamed.title == "busy"
    model.release()
    await turn.read()
    assert (await door.session(session)).title == "busy"


async def rows_of(pool: Pool, session: str) -> dict[str, int]:
    tables = await pool.fetch(
        "select table_name, column_name from information_schema.columns where table_schema = 'chat' "
        "and column_name in ('thread_id', 'session_id') union values ('sessions', 'id'), ('threads', 'id') "
        "except values ('delegations', 'thread_id'), ('channel_messages', 'thread_id')"  # threads of another kind
    )
    return {
        f"{name}.{column}": await pool.fetchval(f"select count(*) from {name} where {column} = $1", session)
        for name, column in tables
    }


async def test_deleting_leaves_no_row_of_the_session(door: Door, pool: Pool) -> None:
    session = new_id()
    turn = await door.say("hello", session)
    await pool.execute("insert into turn_intents values ($1, 1, 1, 'c', 'write', '{}')", turn.view.turn_id)
    await pool.execute(
        "insert into hook_runs (id, session_id, event, hook_id, hook_name, subject, reason, status, input, output,"
        " duration_ms) values ('r', $1, 'Stop', 'h', 'h', '', '', 'ok', '{}', '', 0)",
        session,
    )
    await pool.execute("insert into threads (id, kind, resource) values ($1 || '-d', 'delegate', 'r')", session)
    await pool.execute(
        "insert into delegations values ($1 || '-d', $1, $2, 'c', 'researcher', 'completed', 1, 1)",
        session,
        turn.view.turn_id,
    )
    before = await rows_of(pool, session)

    deleted = await door.ask(DeleteSession(session_id=session))
    missing = await refusal(door.ask(DeleteSession(session_id=session)))

    assert min(before.values()) > 0
    assert set((await rows_of(pool, session)).values()) == {0}
    assert await pool.fetchval("select count(*) from turn_intents where turn_id = $1", turn.view.turn_id) == 0
    assert await pool.fetchval("select count(*) from threads where id = $1 || '-d'", session) == 0
    assert (deleted.id, deleted.deleted) == (session, True)
    assert (missing.http_status, missing.code) == (404, "not_found")
    assert (await door.say("hello again", session)).view.created


async def test_deleting_a_running_session_stops_its_turn_first(door: Door, model: ModelServer, pool: Pool) -> None:
    session = new_id()
    model.script(Reply(text="one two", after=1, hold=True))
    turn = await door.start("hello", session)
    await turn.read(until="one")

    await door.ask(DeleteSession(session_id=session))
    await turn.read()

    assert turn.ending["type"] == "abort"
    assert set((await rows_of(pool, session)).values()) == {0}


async def listed(door: Door, session: str) -> Any:
    items = (await door.ask(ListSessions())).items
    return next(item for item in items if item.id == session)


async def test_the_list_tells_how_the_last_turn_ended_until_the_next_one_runs(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    model.script(Reply(status=401), Reply(text="one two", after=1, hold=True), Reply(text="well"))

    await door.say("fail", session)
    failed = await listed(door, session)
    running = await door.start("go on", session)
    await model.until(lambda server: server.held == 1)
    while_it_runs = await listed(door, session)
    model.release()
    await running.read()
    ended = await listed(door, session)

    assert (failed.last_turn_state, while_it_runs.last_turn_state, ended.last_turn_state) == (
        "failed",
        None,
        "completed",
    )
    events = await pool.fetch(
        "select payload::jsonb->'session' as session from outbox where subject like '%chat.evt.turns-%' "
        "and payload::jsonb->'session'->>'id' = $1 order by position",
        session,
    )
    assert [event["session"]["lastTurnState"] for event in events] == [None, "failed", None, "completed"]


@pytest.mark.parametrize(
    ("change", "kept"), [({"title": "Another"}, "failed"), ({"kept": 1}, None)], ids=["renamed", "shortened"]
)
async def test_a_chat_that_was_shortened_is_not_marked_by_what_is_gone(
    change: dict[str, Any], kept: str | None, door: Door, model: ModelServer
) -> None:
    session = new_id()
    model.script(Reply(status=401))
    await door.say("fail", session)
    if "kept" in change:
        change = {"kept": [message["id"] for message in (await door.stored(session))[:1]]}

    await save(door, session, 0, **change)

    assert (await listed(door, session)).last_turn_state == kept


async def test_a_session_whose_turn_does_not_settle_stays_and_the_answer_comes_in_time(
    door: Door, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "SETTLE_S", 0.3)
    session = (await create(door)).id
    await pool.execute(
        "insert into turns (id, session_id, user_message_id, assistant_message_id, state, attempt, owner, boot_id, "
        "lease_until, trace_headers) values ($1, $2, 'u', 'a', 'running', 1, gen_random_uuid(), gen_random_uuid(), "
        "clock_timestamp() + interval '1 minute', '{}')",
        session,
        session,
    )
    await pool.execute("update sessions set running_turn_id = id where id = $1", session)

    error = await refusal(door.ask(DeleteSession(session_id=session)))

    assert (error.http_status, error.code, error.extra["session"]["id"]) == (409, "turn_running", session)
    await pool.execute("delete from turns where id = $1", session)


async def test_deleting_while_turns_end_deletes_every_session_once(door: Door, pool: Pool) -> None:
    sessions = [new_id() for _ in range(10)]
    turns = await asyncio.gather(*(door.start("hello there", session) for session in sessions))

    await asyncio.gather(*(door.ask(DeleteSession(session_id=session)) for session in sessions))
    await asyncio.gather(*(turn.read() for turn in turns))

    for session in sessions:
        assert set((await rows_of(pool, session)).values()) == {0}


async def test_a_long_history_is_read_page_by_page(door: Door) -> None:
    session = new_id()
    for number in range(3):
        await door.say(f"question {number}", session)
    whole = await door.stored(session)

    last = await door.ask(GetSession(session_id=session, limit=4))
    first = await door.ask(GetSession(session_id=session, limit=4, before=last.previous_cursor))

    assert [*first.messages, *last.messages] == whole
    assert first.previous_cursor is None


@pytest.mark.parametrize("before", ["unknown", "a\x00b", "x" * 10_000, ""])
async def test_a_page_before_nothing_is_refused(door: Door, before: str) -> None:
    session = (await create(door)).id

    error = await refusal(door.ask(GetSession(session_id=session, before=before)))

    assert (error.http_status, error.field) == (422, "before")


@pytest.mark.parametrize(
    ("character", "length"), [("x", 1_200_000), ("鷺", 400_000), ("\x01", 200_000)], ids=["plain", "wide", "control"]
)
async def test_a_page_stays_below_a_megabyte_however_large_the_messages_are(
    character: str, length: int, door: Door, model: ModelServer, pool: Pool
) -> None:
    model.models = ModelList(fields={"context_length": 10_000_000})
    session = new_id()
    for _ in range(2):
        model.script(Reply(text="Once" + character * (length // 3), chunks=3))
        await door.say(character * (length // 10), session)
    book = "Once" + character * length
    model.script(Reply(text=book, chunks=4))
    turn = await door.say("write a book", session)

    sizes, cursor = [], None
    while True:
        view = await door.ask(GetSession(session_id=session, before=cursor))
        sizes.append(len(view.encode()))
        cursor = view.previous_cursor
        if cursor is None:
            break

    assert max(sizes) < 1_000_000
    assert len(sizes) > 1
    newest = (await door.ask(GetSession(session_id=session, limit=1))).messages[0]
    assert "more characters are stored]" in newest["parts"][1]["text"]
    stored = await pool.fetchval("select parts from messages where id = $1", turn.view.message_id)
    assert stored[1]["text"] == turn.text == book
    joined = await door.join(session, turn.view.turn_id)
    assert joined.message == turn.message


async def test_a_page_around_the_largest_message_stays_below_a_megabyte_too(door: Door, model: ModelServer) -> None:
    model.models = ModelList(fields={"context_length": 10_000_000})
    session = new_id()
    model.script(Reply(text="鷺" * 400_000, chunks=4), Reply(text="y" * 380_000, chunks=4))
    giant = await door.say("write a book", session)
    following = await door.say("and a shorter one", session)

    view = await door.ask(GetSession(session_id=session, around=giant.view.message_id))

    assert len(view.encode()) < 1_000_000
    assert view.messages[0]["id"] == giant.view.message_id
    assert view.messages[-1]["id"] == following.view.message_id
