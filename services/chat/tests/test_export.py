"""What an export reads: the shown branch in pages, whole, whatever happens to the session meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import (
    BranchMessages,
    CreateSession,
    CreateSessionBody,
    DeleteSession,
    OutlineSession,
    ReadBranch,
    SessionOutline,
    SetHead,
    SetHeadBody,
)
from popagent_testing.model_server import ModelServer, Reply
from services.chat.tests.running import Door

pytestmark = pytest.mark.usefixtures("chat")


async def outline(door: Door, session: str) -> SessionOutline:
    found: SessionOutline = await door.ask(OutlineSession(session_id=session))
    return found


async def pages(door: Door, session: str, whole: SessionOutline) -> list[list[dict[str, Any]]]:
    read: list[BranchMessages] = [await door.ask(ReadBranch(session_id=session, page=page)) for page in whole.pages]
    return [page.messages for page in read]


async def lengthen(pool: Pool, session: str, texts: list[str]) -> list[str]:
    """Append a message for each text to the shown branch and return their ids."""
    ids = [f"more-{number}" for number in range(len(texts))]
    for message, text in zip(ids, texts, strict=True):
        await pool.execute(
            """
            insert into messages (thread_id, id, seq, parent_id, role, parts, metadata, token_count)
            select id, $2, next_seq, head_id, 'user',
                json_build_array(json_build_object('type', 'text', 'text', $3::text)), '{}', 1
            from threads
            where id = $1
            """,
            session,
            message,
            text,
        )
        await pool.execute("update threads set next_seq = next_seq + 1, head_id = $2 where id = $1", session, message)
    return ids


async def test_the_pages_of_an_outline_are_the_shown_branch_and_stay_it(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    session, question = new_id(), new_id()
    model.script(Reply(text="hidden"), Reply(text="shown"))
    hidden = await door.say("question", session, id=question)
    shown = await door.say(None, session, trigger="regenerate-message", message_id=question)
    more = await lengthen(pool, session, ["x"] * 250)

    whole = await outline(door, session)
    body = SetHeadBody(revision=0, message_id=hidden.view.message_id)
    await door.ask(SetHead(command_id=new_id(), session_id=session, body=body))
    read = await pages(door, session, whole)

    assert (whole.session.id, whole.workspace, whole.agent) == (session, "Default workspace", "Orchestrator")
    assert [len(page) for page in read] == [page.count for page in whole.pages] == [100, 100, 52]
    messages = [message for page in read for message in page]
    assert [message["id"] for message in messages] == [question, shown.view.message_id, *more]
    assert messages[1] == shown.message
    assert "createdAt" in messages[0]["metadata"]
    assert not any("siblings" in message["metadata"] for message in messages)


async def test_large_messages_come_whole_and_no_page_is_larger_than_it_must_be(door: Door, pool: Pool) -> None:
    session = new_id()
    await door.say("question", session)
    sizes = [10, 300_000, 300_000, 2_000_000, 300_000, 10]
    await lengthen(pool, session, ["語" * (size // 3) for size in sizes])

    read = await pages(door, session, await outline(door, session))

    texts = [message["parts"][-1]["text"] for page in read for message in page][2:]
    assert [len(text) * 3 for text in texts] == [size // 3 * 3 for size in sizes]
    assert max(sum(len(str(message).encode()) for message in page) for page in read) < 2_500_000


async def test_an_empty_a_deleted_and_an_unknown_session(door: Door) -> None:
    empty = await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody()))
    assert (await outline(door, empty.id)).pages == []
    session = new_id()
    await door.say("hello", session)
    whole = await outline(door, session)
    await door.ask(DeleteSession(session_id=session))

    with pytest.raises(AppError) as unknown:
        await outline(door, session)
    with pytest.raises(AppError) as gone:
        await pages(door, session, whole)

    assert (unknown.value.http_status, gone.value.http_status) == (404, 404)
    assert "deleted while it was read" in gone.value.message
