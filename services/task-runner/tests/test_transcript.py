"""What is written down of an attempt: at once or throttled, bounded, without secrets, through the fence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from popagent_db.pool import Pool
from popagent_kit import json
from popagent_proto.task_runner.activity import ACTIVITY_CHARACTERS, RECORDS_KEPT
from popagent_proto.task_runner.tasks import GetTask, ReadTranscript
from popagent_rows.leased import Holder, Lease
from popagent_task_runner.tasks.executor import Call, Note
from popagent_task_runner.tasks.rows import TASKS, LeasedTask
from popagent_task_runner.tasks.transcript import Transcript, bounded

Hold = Callable[..., Any]


@pytest.fixture
def hold(pool: Pool) -> Hold:
    """Return `await hold()`: a task of which this process holds the lease, with its open transcript."""

    async def holding(text_every_s: float = 0.05) -> tuple[Lease[LeasedTask], Transcript]:
        if not await pool.fetchval("select count(*) from tasks"):
            await pool.execute(
                "insert into tasks (id, source, workspace_id, title, prompt, max_attempts)"
                " values ('t', 'user', 'w', '', 'p', 3)"
            )
        async with pool.acquire() as conn:
            asked_at = time.monotonic()
            (row,) = await TASKS.claim(conn, Holder.of_this_process(), 1)
            transcript = Transcript(pool, Lease(TASKS, row, asked_at), text_every_s=text_every_s)
            await transcript.open(conn)
        return Lease(TASKS, row, asked_at), transcript

    return holding


async def stored(pool: Pool) -> list[Any]:
    return await pool.fetch("select seq, revision, attempt, body, size from task_activity order by seq")


async def test_the_newest_256_records_are_kept(pool: Pool, hold: Hold) -> None:
    _, transcript = await hold()

    for number in range(300):
        transcript.note(Note("status", f"n{number}"))
        if number % 90 == 0:
            await asyncio.sleep(0.05)
    await transcript.settle()
    transcript.note(Note("status", "one more"))
    await transcript.settle()

    rows = await stored(pool)
    assert len(rows) == RECORDS_KEPT
    assert [row["seq"] for row in rows] == list(range(301 - RECORDS_KEPT + 1, 302))
    assert rows[-1]["body"]["text"] == "one more"


async def test_words_of_a_running_step_grow_one_record_and_are_written_about_once_a_period(
    pool: Pool, hold: Hold
) -> None:
    _, transcript = await hold(text_every_s=0.2)
    for _ in range(300):
        transcript.said(Note("text", "word ", "run", "orchestrator", 1))
        await asyncio.sleep(0.002)
    transcript.note(Note("step", "word " * 300, "run", "orchestrator", 1, finish_reason="stop"))
    await transcript.settle()

    text, step = await stored(pool)
    assert text["body"]["text"] == "word " * 300
    assert (step["body"]["kind"], step["body"]["finish_reason"]) == ("step", "stop")
    assert step["revision"] <= 12  # 300 deltas in 0.6 s, on a busy machine some more


async def test_a_tool_call_is_stored_at_once_whatever_the_period_of_words(pool: Pool, hold: Hold) -> None:
    _, transcript = await hold(text_every_s=60)
    transcript.said(Note("text", "I look. ", "run", "orchestrator", 1))

    transcript.note(Note("tool-call", "", "run", "orchestrator", 1, calls=(Call("c1", "read", {"path": "a"}),)))
    async with asyncio.timeout(5):
        while len(rows := await stored(pool)) < 2:
            await asyncio.sleep(0.01)

    assert [row["body"]["kind"] for row in rows] == ["text", "tool-call"]
    await transcript.close()


async def test_a_later_attempt_goes_on_after_the_earlier_one(pool: Pool, hold: Hold) -> None:
    lease, first = await hold()
    first.note(Note("status", "first"))
    await first.settle()
    await pool.execute("update tasks set state = 'queued', owner = null, lease_until = null, run_at = now()")

    _, second = await hold()
    first.note(Note("status", "too late"))
    await first.settle()
    second.note(Note("status", "second"))
    await second.settle()

    assert lease.row.attempt == 1
    assert [(row["seq"], row["attempt"], row["body"]["text"]) for row in await stored(pool)] == [
        (1, 1, "first"),
        (2, 2, "second"),
    ]


def test_secrets_are_blanked_before_anything_is_stored() -> None:
    note = Note(
        "tool-call",
        "the key is sk-abcdefghijklmnop",
        calls=(
            Call("c", "http", {"api_key": "hunter2hunter2", "url": "https://u:pw@x.org"}, error="Bearer ab3dEfghijk9"),
        ),
    )

    text = json.dumps(bounded(note).model_dump(mode="json")).decode()

    for secret in ("abcdefghijklmnop", "hunter2hunter2", "u:pw@", "ab3dEfghijk9"):
        assert secret not in text


def strings_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (key, *strings_of(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in strings_of(inner)]
    return [value] if isinstance(value, str) else []


ANY = st.text(st.characters(codec=None), max_size=200)


@example("", "", {"a": "\x00"}, "")
@example("", "", "\\u0000\x00", "\\u0000")
@given(ANY, ANY, st.recursive(st.none() | st.booleans() | ANY, lambda x: st.dictionaries(ANY, x, max_size=3)), ANY)
def test_whatever_an_agent_says_can_be_stored(text: str, tool: str, arguments: Any, result: str) -> None:
    note = Note("step", text * 100, "r", tool, -1, text, tuple(Call(tool, tool, arguments, result) for _ in range(40)))

    record = bounded(note)
    stored_text = json.dumps(record.model_dump(mode="json")).decode()

    assert "\x00" not in "".join(strings_of(json.loads(stored_text.encode())))
    assert len(record.text) <= ACTIVITY_CHARACTERS
    assert len(stored_text) < 400_000


async def test_a_transcript_is_read_in_pages_and_followed_by_what_was_written_since(start: Any, door: Any) -> None:
    await start()
    created = await door.create("\n".join(f"call tool{n}" for n in range(30)) + "\nsleep 0.4\nsay one two three")
    async with asyncio.timeout(10):
        while (seen := await door.ask(GetTask(task_id=created.id, limit=10))).revision < 30:
            await asyncio.sleep(0.02)

    before = await door.ask(ReadTranscript(task_id=created.id, before=seen.previous_cursor, limit=15))
    first = await door.ask(ReadTranscript(task_id=created.id, before=before.previous_cursor, limit=15))
    await door.until(created.id, "completed")
    since = await door.ask(ReadTranscript(task_id=created.id, after=seen.revision))
    nothing = await door.ask(ReadTranscript(task_id=created.id, after=since.revision))

    steps = [record.calls[0].tool for page in (first.records, before.records, seen.activity) for record in page]
    assert steps == [f"tool{n}" for n in range(30)]
    assert first.previous_cursor is None
    assert "".join(record.text for record in since.records) == "one two three "
    assert (nothing.records, nothing.revision) == ([], since.revision)


async def test_a_page_is_bounded_in_bytes(start: Any, door: Any, pool: Pool) -> None:
    await start(slots=0)
    created = await door.create()
    await pool.execute(
        "insert into task_activity (task_id, seq, revision, attempt, body, size)"
        " select $1, n, n, 1, json_build_object('kind', 'status', 'text', repeat('a', 8000)), 8040"
        " from generate_series(1, 256) n",
        created.id,
    )

    page = await door.get(created.id)
    followed = await door.ask(ReadTranscript(task_id=created.id, after=0))

    assert 60 < len(page.activity) < 80
    assert page.previous_cursor == page.activity[0].seq
    assert followed.revision == followed.records[-1].revision < 80


async def test_what_was_being_written_when_the_attempt_ends_is_stored_all_the_same(pool: Pool, hold: Hold) -> None:
    _, transcript = await hold()
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with asyncio.timeout(10), pool.acquire() as conn, conn.transaction():
        await conn.execute("select 1 from tasks where id = 't' for update")
        transcript.note(Note("tool-call", calls=(Call("c1", "write"),)))
        while not await conn.fetchval(waiting):
            await conn.execute("select pg_stat_clear_snapshot()")
            await asyncio.sleep(0.01)
        settling = asyncio.create_task(transcript.settle())
        transcript.note(Note("step", "done"))
        await asyncio.sleep(0)
    await settling

    assert [row["body"]["kind"] for row in await stored(pool)] == ["tool-call", "step"]
