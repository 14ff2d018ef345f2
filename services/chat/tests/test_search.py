"""Search: of all sessions by title and text, and within the branch that one session shows."""

from __future__ import annotations

import time
from typing import Any

import pytest

from popagent_chat.sessions import search
from popagent_chat.threads import indexing
from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import (
    CreateSession,
    CreateSessionBody,
    DeleteSession,
    ListSessions,
    MessageHits,
    PatchSession,
    PatchSessionBody,
    SearchMessages,
    SessionList,
)
from popagent_proto.chat.workspaces import RegisterWorkspace, RegisterWorkspaceBody
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Door

pytestmark = pytest.mark.usefixtures("chat")


@pytest.fixture(autouse=True)
async def no_sessions(pool: Pool) -> None:
    """Each test finds its own alone."""
    await pool.execute("delete from sessions")
    await pool.execute("delete from threads")
    await pool.execute("delete from message_texts")


async def found(door: Door, q: str, **which: Any) -> SessionList:
    page: SessionList = await door.ask(ListSessions(q=q, **which))
    return page


async def within(door: Door, session: str, q: str, **which: Any) -> MessageHits:
    page: MessageHits = await door.ask(SearchMessages(session_id=session, q=q, **which))
    return page


async def titled(door: Door, title: str, **body: Any) -> str:
    view = await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(title=title, **body)))
    return str(view.id)


async def indexed(pool: Pool) -> None:
    index = indexing.SearchIndex(pool)
    await index.keep_up()
    while await pool.fetchval("select exists (select 1 from message_texts where not indexed)"):
        await index.keep_up()


@pytest.mark.parametrize("by_index", [False, True], ids=["just written", "indexed"])
async def test_a_session_is_found_by_its_title_or_by_what_was_said_in_it(
    by_index: bool, door: Door, model: ModelServer, pool: Pool
) -> None:
    asked, answered = new_id(), new_id()
    model.script(
        Reply(text="Good day."),
        Reply(text="It is a bird."),
        Reply(text="Schau: der **Größte** Reiher\n\nsteht im 水辺 da."),
    )
    await door.say("Hello", asked)
    await door.say("Where does the HERON stand?", asked)
    second = await door.say("Tell me", answered)
    by_title = await titled(door, "All about herons")
    if by_index:
        await indexed(pool)

    hits = (await found(door, "heron")).items
    [german] = (await found(door, "grosste REIHER")).items
    [japanese] = (await found(door, "水")).items
    [short] = (await found(door, "im da")).items

    assert [(item.id, item.match and item.match.role) for item in hits] == [(by_title, None), (asked, "user")]
    assert hits[1].match is not None
    assert hits[1].match.excerpt == "Where does the HERON stand?"
    assert hits[1].match.message_id == (await door.session(asked)).messages[2]["id"]
    for item in (german, japanese, short):
        assert item.match is not None
        assert (item.id, item.match.message_id, item.match.role) == (answered, second.view.message_id, "assistant")
    assert german.match is not None
    assert german.match.excerpt == "Schau: der **Größte** Reiher steht im 水辺 da."
    for nothing in ("heron bird", "gull", "水山", "h_ron", "%"):
        assert (await found(door, nothing)).items == [], nothing


async def test_a_title_is_searched_as_it_is_now_and_before_messages(door: Door) -> None:
    session = new_id()
    await door.say("a heron", session)

    [by_first_title] = (await found(door, "heron")).items
    body = PatchSessionBody(revision=0, title="Über Möwen")
    await door.ask(PatchSession(command_id=new_id(), session_id=session, body=body))
    [by_message] = (await found(door, "heron")).items
    [by_new_title] = (await found(door, "uber mowen")).items

    assert by_first_title.match is None
    assert by_message.match is not None
    assert by_new_title.match is None


async def test_what_tools_returned_is_not_searched(door: Door, model: ModelServer) -> None:
    model.script(Reply(tool_calls=(ScriptedCall("read", '{"path": "README.md"}'),)), Reply(text="I have read it."))
    turn = await door.say("read", new_id())

    assert "heron" in str(turn.message["parts"])
    assert (await found(door, "heron")).items == []
    assert len((await found(door, "have read")).items) == 1


async def test_a_search_is_paged_and_keeps_to_archive_and_workspace(door: Door, root: Any, pool: Pool) -> None:
    (root / "other").mkdir()
    body = RegisterWorkspaceBody(name="Other", path="other")
    workspace = (await door.ask(RegisterWorkspace(command_id=new_id(), body=body))).id
    ids = [await titled(door, f"Heron {number}") for number in range(5)]
    elsewhere = await titled(door, "Heron elsewhere", workspace_id=workspace)
    away = await titled(door, "Heron away")
    archive = PatchSessionBody(revision=0, archived=True)
    await door.ask(PatchSession(command_id=new_id(), session_id=away, body=archive))
    await pool.execute("delete from workspaces where id <> 'default' and id <> $1", workspace)

    pages = [await found(door, "heron", limit=2, workspace_id="default")]
    while pages[-1].next_cursor is not None:
        pages.append(await found(door, "heron", limit=2, workspace_id="default", cursor=pages[-1].next_cursor))

    assert [item.id for page in pages for item in page.items] == ids[::-1]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert [item.id for item in (await found(door, "heron", workspace_id=workspace)).items] == [elsewhere]
    assert [item.id for item in (await found(door, "heron", archived=True)).items] == [away]


async def test_within_a_session_only_the_shown_branch_is_searched_oldest_first(door: Door, model: ModelServer) -> None:
    session, question = new_id(), new_id()
    model.script(*(Reply(text=f"answer {number} of the heron") for number in range(4)))
    await door.say("Is there a heron?", session, id=question)
    await door.say("And where?", session)
    hidden = (await door.session(session)).messages
    await door.say(None, session, trigger="regenerate-message", message_id=question)
    await door.say("So there is a heron", session)

    whole = await within(door, session, "HERON")
    first = await within(door, session, "heron", limit=2)
    rest = await within(door, session, "heron", limit=2, cursor=first.next_cursor)

    shown = (await door.session(session)).messages
    assert [hit.message_id for hit in whole.items] == [message["id"] for message in shown]
    assert [hit.role for hit in whole.items] == ["user", "assistant"] * 2
    assert whole.items[1].excerpt == "answer 2 of the heron"
    assert hidden[1]["id"] not in str(whole)
    assert [*first.items, *rest.items] == whole.items
    assert (whole.next_cursor, rest.next_cursor) == (None, None)
    assert (await within(door, session, "answer 0")).items == []


async def test_what_is_no_search_is_named(door: Door) -> None:
    for cursor, session in (("nothing", await titled(door, "x")), (None, "unknown")):
        with pytest.raises(AppError) as refused:
            await within(door, session, "heron", cursor=cursor)
        expected = (422, "cursor") if cursor else (404, None)
        assert (refused.value.http_status, refused.value.field) == expected


@pytest.mark.parametrize(
    "before",
    ["update message_texts set folded = null, indexed = false", "delete from message_texts"],
    ids=["before the migration", "by an older process after it"],
)
async def test_what_was_stored_without_its_words_is_found_after_the_chore(before: str, door: Door, pool: Pool) -> None:
    session = new_id()
    await door.say("a Märchen", session)
    await pool.execute(before)
    await pool.execute("update sessions set folded_title = null, title = 'Ärger', title_locked = true")

    assert (await found(door, "marchen")).items == []
    await indexed(pool)

    assert len((await found(door, "marchen")).items) == 1
    assert len((await found(door, "arger")).items) == 1


async def test_a_deleted_session_leaves_no_words_behind(door: Door, pool: Pool) -> None:
    session = new_id()
    await door.say("a heron", session)

    await door.ask(DeleteSession(session_id=session))

    assert await pool.fetchval("select count(*) from message_texts where thread_id = $1", session) == 0


async def fill(pool: Pool, sessions: int, messages: int) -> None:
    """Store chats whose every hundredth message holds a word of its own, in ASCII and in another script."""
    await pool.execute(
        """
        insert into threads (id, kind, resource, head_id, next_seq)
        select 'many' || s, 'session', 'popagent-user', 'm' || $2::int, $2::int + 1 from generate_series(1, $1::int) s
        """,
        sessions,
        messages,
    )
    await pool.execute(
        """
        insert into messages (thread_id, id, seq, parent_id, role, parts, metadata, token_count)
        select 'many' || s, 'm' || m, m, case when m > 1 then 'm' || m - 1 end,
            case when m % 2 = 1 then 'user' else 'assistant' end,
            json_build_array(json_build_object('type', 'text', 'text', t.text)), '{}', 1
        from generate_series(1, $1::int) s, generate_series(1, $2::int) m,
            lateral (select repeat(md5((s * m)::text) || ' ', 5) || case when m % 100 = 0 then 'heron' || s else '' end
                as text) t
        """,
        sessions,
        messages,
    )
    await pool.execute("insert into message_texts (thread_id, seq) select thread_id, seq from messages")
    await pool.execute(
        """
        update message_texts t set folded = m.parts->0->>'text', indexed = true
        from messages m where m.thread_id = t.thread_id and m.seq = t.seq
        """
    )
    await pool.execute(
        """
        insert into sessions (id, title, title_locked, workspace_id, revision, version, folded_title)
        select 'many' || s, 'Chat ' || s, true, 'default', 0, 1, 'chat ' || s from generate_series(1, $1::int) s
        """,
        sessions,
    )
    await pool.execute("analyze")


async def test_twenty_thousand_messages_are_searched_by_index(door: Door, pool: Pool) -> None:
    await fill(pool, 20, 1_000)

    took = []
    for _ in range(7):
        began_at = time.perf_counter()
        [only] = (await found(door, "HERON13")).items
        took.append(time.perf_counter() - began_at)
    wanted = search.Wanted.of("HERON13")
    async with pool.acquire() as conn:
        plan = await conn.fetchval(
            f"explain (format json) {search.BY_INDEX.sql}",
            *(False, None, None, None, 50, wanted.first, wanted.others),
        )

    assert only.match is not None
    assert (only.id, only.match.message_id) == ("many13", "m1000")
    assert sorted(took)[0] < 0.1
    assert "message_texts_words" in str(plan)


@pytest.mark.parametrize("query", ["´", "\u0301", "¨ ¸"])
async def test_a_search_for_accents_alone_is_refused_by_name(query: str, door: Door) -> None:
    session = await titled(door, "café")

    with pytest.raises(AppError) as of_all:
        await found(door, query)
    with pytest.raises(AppError) as of_one:
        await within(door, session, query)

    assert {(refused.value.http_status, refused.value.field) for refused in (of_all, of_one)} == {(422, "q")}
