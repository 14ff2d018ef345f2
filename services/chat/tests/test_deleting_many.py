"""All chats of a workspace are deleted by a job, and a long chat by one of its own; each as one chat is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from popagent_chat.sessions import delete_all, removing
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.hooks import CreateHook, HookFields
from popagent_proto.chat.jobs import GetChatJob, ListChatJobs
from popagent_proto.chat.sessions import (
    CreateSession,
    CreateSessionBody,
    DeleteSession,
    GetSession,
    ListSessions,
    PatchSession,
    PatchSessionBody,
)
from popagent_proto.chat.workspaces import DeleteWorkspaceSessions, RegisterWorkspace, RegisterWorkspaceBody
from popagent_proto.common import JobView
from popagent_testing.model_replies import call
from popagent_testing.model_server import ModelServer, Reply
from popagent_testing.suite_bus import until
from services.chat.tests.conftest import StartChat
from services.chat.tests.hook_server import HookServer
from services.chat.tests.running import Chat, Door, refusal


async def workspace(door: Door, root: Path) -> str:
    command_id = new_id()
    (root / command_id).mkdir()
    body = RegisterWorkspaceBody(name="Mine", path=command_id)
    return str((await door.ask(RegisterWorkspace(command_id=command_id, body=body))).id)


async def chats(door: Door, workspace_id: str, count: int) -> list[str]:
    bodies = [CreateSessionBody(workspace_id=workspace_id, title=f"Chat {number}") for number in range(count)]
    return [(await door.ask(CreateSession(command_id=new_id(), body=body))).id for body in bodies]


async def ended(door: Door, job_id: str) -> JobView:
    async with asyncio.timeout(20):
        while (job := await door.ask(GetChatJob(job_id=job_id))).state not in ("completed", "failed"):
            await asyncio.sleep(0.02)
    found: JobView = job
    return found


async def left_of(pool: Pool, session_id: str) -> int:
    tables = {"sessions": "id", "threads": "id", "messages": "thread_id", "message_texts": "thread_id"}
    tables |= {"turns": "session_id", "hook_runs": "session_id", "delegations": "session_id"}
    counts = [await pool.fetchval(f"select count(*) from {t} where {c} = $1", session_id) for t, c in tables.items()]
    return sum(counts)


async def lengthened(pool: Pool, session_id: str, messages: int) -> None:
    await pool.execute(
        "insert into messages (thread_id, id, seq, parent_id, role, parts, metadata, token_count)"
        " select $1, 'm' || g, g, case when g > 1 then 'm' || (g - 1) end, 'user', '[]', '{}', 1"
        " from generate_series(1, $2::int) g",
        session_id,
        messages,
    )
    await pool.execute(
        "insert into message_texts (thread_id, seq, folded) select $1, g, 'word' from generate_series(1, $2::int) g",
        session_id,
        messages,
    )
    await pool.execute("update threads set next_seq = $2, head_id = $3 where id = $1", session_id, messages + 1, "m1")


async def test_every_chat_of_one_workspace_goes_and_no_other(chat: Chat, door: Door, root: Path, pool: Pool) -> None:
    mine, other = await workspace(door, root), await workspace(door, root)
    gone, stay = await chats(door, mine, 5), await chats(door, other, 1)
    await door.say("Hello", gone[0])
    await door.ask(
        PatchSession(command_id=new_id(), session_id=gone[1], body=PatchSessionBody(revision=0, archived=True))
    )

    job: JobView = await door.ask(DeleteWorkspaceSessions(workspace_id=mine))
    done = await ended(door, job.id)

    assert (job.kind, job.about, job.title) == ("workspaces-delete-sessions", mine, "Delete all chats of “Mine”")
    assert (done.state, done.progress, done.result) == ("completed", 1.0, {"deleted": 5, "keptCount": 0, "kept": []})
    assert [await left_of(pool, each) for each in gone] == [0] * 5
    assert (await door.session(stay[0])).title == "Chat 0"
    told = await pool.fetchval(
        "select count(*) from outbox where subject like '%sessions-deleted%' and aggregate_id = any($1)", gone
    )
    assert told == 5
    assert job.id in {each.id for each in (await door.ask(ListChatJobs())).items}
    assert await pool.fetchval("select count(*) from outbox where aggregate_id = $1", job.id) >= 2


async def test_of_each_chat_hooks_are_told_and_its_audit_and_the_threads_of_its_specialists_go(
    start: StartChat, door: Door, root: Path, pool: Pool, model: ModelServer
) -> None:
    async with HookServer() as server:
        await start(hook_origins=server.origin)
        for event in ("SessionEnd", "PreToolUse"):
            fields = HookFields.model_validate({"name": event, "event": event, "url": f"{server.origin}/{event}"})
            await door.ask(CreateHook(command_id=new_id(), fields=fields))
        mine = await workspace(door, root)
        gone = await chats(door, mine, 2)
        for each in gone:
            ask = call("agent-implementer", prompt="Look.")
            model.script(Reply(tool_calls=(ask,)), Reply(text="Seen."), Reply(text="It was seen."))
            await door.say("Hello", each)
        threads = [row["thread_id"] for row in await pool.fetch("select thread_id from delegations")]
        audited = await pool.fetchval("select count(*) from hook_runs where session_id = any($1)", gone)

        await ended(door, (await door.ask(DeleteWorkspaceSessions(workspace_id=mine))).id)
        await until(lambda: server.paths.count("/SessionEnd") == len(gone))

        told = {each.json["sessionId"] for each in server.told if each.path == "/SessionEnd"}
    await pool.execute("delete from hooks")
    assert told == set(gone)
    assert (len(threads), audited) == (2, 2)
    assert [await left_of(pool, each) for each in gone] == [0, 0]
    assert await pool.fetchval("select count(*) from threads where id = any($1)", threads) == 0
    assert await pool.fetchval("select count(*) from messages where thread_id = any($1)", threads) == 0


async def test_asked_twice_it_is_one_job_and_a_chat_made_meanwhile_stays(
    chat: Chat, door: Door, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await workspace(door, root)
    gone = await chats(door, mine, 3)
    held, go_on, leave = asyncio.Event(), asyncio.Event(), delete_all.leave

    async def leave_later(*args: object, **kwargs: object) -> removing.Left:
        held.set()
        await go_on.wait()
        return await leave(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(delete_all, "leave", leave_later)

    jobs = await asyncio.gather(*(door.ask(DeleteWorkspaceSessions(workspace_id=mine)) for _ in range(4)))
    await held.wait()
    new = (await chats(door, mine, 1))[0]
    jobs.append(await door.ask(DeleteWorkspaceSessions(workspace_id=mine)))
    go_on.set()
    done = await ended(door, jobs[0].id)
    after = await door.ask(DeleteWorkspaceSessions(workspace_id=mine))
    await ended(door, after.id)

    assert len({job.id for job in jobs}) == 1
    assert done.result == {"deleted": 3, "keptCount": 0, "kept": []}
    assert after.id != done.id
    assert [(await refusal(door.session(each))).http_status for each in [*gone, new]] == [404] * 4


async def test_a_running_turn_is_stopped_and_one_that_does_not_settle_is_kept(
    chat: Chat, door: Door, root: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_all, "SETTLE_S", 0.5)
    mine = await workspace(door, root)
    stopped, stuck, plain = await chats(door, mine, 3)
    model.script(Reply(text="word after word", after=1, hold=True))
    running = await door.start("Tell me a lot", stopped)
    await running.read(until="word")
    await chat.pool.execute("update sessions set running_turn_id = 'lost' where id = $1", stuck)

    done = await ended(door, (await door.ask(DeleteWorkspaceSessions(workspace_id=mine))).id)

    assert done.result is not None
    assert (done.result["deleted"], done.result["keptCount"]) == (2, 1)
    assert done.result["kept"][0]["id"] == stuck
    assert "turn is running" in done.result["kept"][0]["reason"]
    assert (await door.session(stuck)).running_turn_id == "lost"
    assert [(await refusal(door.session(each))).http_status for each in (stopped, plain)] == [404] * 2


@pytest.mark.usefixtures("chat")
async def test_an_unknown_workspace_has_no_chats_to_delete_and_an_empty_one_is_done_at_once(
    door: Door, root: Path
) -> None:
    mine = await workspace(door, root)

    unknown = await refusal(door.ask(DeleteWorkspaceSessions(workspace_id="unknown")))
    done = await ended(door, (await door.ask(DeleteWorkspaceSessions(workspace_id=mine))).id)

    assert unknown.http_status == 404
    assert done.result == {"deleted": 0, "keptCount": 0, "kept": []}
    assert (await refusal(door.ask(GetChatJob(job_id="chat_none")))).http_status == 404


async def test_a_job_that_was_cut_off_goes_on_with_what_is_left(
    start: StartChat, door: Door, root: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await start()
    mine = await workspace(door, root)
    gone = await chats(door, mine, 4)
    reached, leave, count = asyncio.Event(), delete_all.leave, 0

    async def only_two(*args: object, **kwargs: object) -> removing.Left:
        nonlocal count
        count += 1
        if count == 3:
            reached.set()
            await asyncio.Event().wait()
        return await leave(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(delete_all, "leave", only_two)
    job = await door.ask(DeleteWorkspaceSessions(workspace_id=mine))
    await reached.wait()
    await first.deps.jobs.stop(drain_s=0)
    before = await pool.fetchval("select count(*) from sessions where id = any($1)", gone)
    monkeypatch.setattr(delete_all, "leave", leave)
    await start()

    done = await ended(door, job.id)

    assert before == 2
    assert done.result == {"deleted": 4, "keptCount": 0, "kept": []}
    assert await pool.fetchval("select count(*) from sessions where id = any($1)", gone) == 0


async def test_a_long_chat_is_gone_at_once_and_its_messages_follow_piece_by_piece(
    chat: Chat, door: Door, root: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LONG_MESSAGES", 10), ("PIECE_MESSAGES", 7)):
        monkeypatch.setattr(removing, name, value)
    mine = await workspace(door, root)
    long, short = await chats(door, mine, 2)
    await lengthened(pool, long, 30)
    await lengthened(pool, short, 10)
    held, go_on, clear = asyncio.Event(), asyncio.Event(), removing.clear

    async def clear_later(*args: object) -> None:
        held.set()
        await go_on.wait()
        await clear(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(removing, "clear", clear_later)

    deleted = await door.ask(DeleteSession(session_id=long))
    at_once = await door.ask(DeleteSession(session_id=short))
    await held.wait()
    again = await door.ask(DeleteSession(session_id=long))
    seen = [await refusal(door.ask(message)) for message in (GetSession(session_id=long), _rename(long))]
    listed = await door.ask(ListSessions(workspace_id=mine))
    found = await door.ask(ListSessions(workspace_id=mine, q="word"))
    body = CreateSessionBody(id=long, workspace_id=mine)
    taken = await refusal(door.ask(CreateSession(command_id=new_id(), body=body)))
    said = await refusal(door.start("Hello", long, workspace_id=mine))
    go_on.set()
    done = await ended(door, deleted.job.id)

    assert at_once.job is None
    assert again.job.id == deleted.job.id
    assert [error.http_status for error in seen] == [404, 404]
    assert (listed.items, found.items) == ([], [])
    assert (taken.code, said.code) == ("session_leaving", "session_leaving")
    assert (done.state, done.about) == ("completed", long)
    assert await left_of(pool, long) == 0
    assert (await refusal(door.ask(DeleteSession(session_id=long)))).http_status == 404


async def test_a_long_chat_is_cleared_by_the_job_of_its_workspace_and_one_that_was_forgotten_is_found(
    chat: Chat, door: Door, root: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "LONG_MESSAGES", 10)
    mine = await workspace(door, root)
    long, half = await chats(door, mine, 2)
    await lengthened(pool, long, 30)
    await pool.execute("update sessions set leaving_at = clock_timestamp() - interval '1 day' where id = $1", half)
    await pool.execute("insert into messages values ($1, 'm', 1, null, 'user', '[]', '{}', 1)", half)

    done = await ended(door, (await door.ask(DeleteWorkspaceSessions(workspace_id=mine))).id)
    forgotten = (await chats(door, mine, 1))[0]
    await pool.execute("update sessions set leaving_at = clock_timestamp() - interval '1 day' where id = $1", forgotten)
    await removing.rescue(chat.deps)
    job_id = await pool.fetchval("select id from jobs where about = $1", forgotten)
    rescued = await ended(door, job_id)

    assert (done.result, rescued.state) == ({"deleted": 2, "keptCount": 0, "kept": []}, "completed")
    assert [await left_of(pool, each) for each in (long, half, forgotten)] == [0, 0, 0]


def _rename(session_id: str) -> PatchSession:
    return PatchSession(command_id=new_id(), session_id=session_id, body=PatchSessionBody(revision=0, title="x"))
