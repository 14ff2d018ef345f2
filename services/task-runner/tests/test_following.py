"""Who follows a task: woken after each write, answered with what came since, and with the end behind the last word."""

from __future__ import annotations

import asyncio
from typing import Any

from popagent_db.pool import Pool
from popagent_proto.matrix import transcript_subject
from popagent_proto.task_runner.activity import ActivityRecord
from popagent_proto.task_runner.news import ReadTaskNews, TaskNews

ENDED = ("completed", "failed", "cancelled", "dead-letter")


async def followed(door: Any, task_id: str, timeout_s: float = 15) -> tuple[list[TaskNews], dict[int, ActivityRecord]]:
    """Follow as the door does, without a clock of its own: ask when woken and when an event is heard."""
    woken = asyncio.Event()

    async def wake(*_: Any) -> None:
        woken.set()

    await door.bus.on_wake(transcript_subject(task_id), wake)
    await door.bus.client.subscribe("popagent.task-runner.evt.>", cb=wake)
    heard: list[TaskNews] = []
    records: dict[int, ActivityRecord] = {}
    after, version = 0, None
    async with asyncio.timeout(timeout_s):
        while True:
            woken.clear()
            news = await door.ask(ReadTaskNews(task_id=task_id, after=after, version=version, limit=3))
            heard.append(news)
            after = news.revision
            records |= {record.seq: record for record in news.records}
            if news.task is not None:
                version = news.task.version
                if news.task.state in ENDED:
                    return heard, records
            if not news.more:
                await woken.wait()


async def test_a_follower_has_every_record_and_the_text_as_it_grew_before_it_hears_of_the_end(
    start: Any, door: Any
) -> None:
    await start(text_every_s=0.05)
    calls = [f"call tool{n}" for n in range(9)]
    words = [f"w{n}" for n in range(40)]
    prompt = "\n".join([*calls, *(f"say {word}\nsleep 0.01" for word in words), "answer done"])
    created = await door.create(prompt)

    heard, records = await followed(door, created.id)
    view = await door.get(created.id)

    assert records == {record.seq: record for record in view.activity}
    assert heard[-1].task is not None
    assert heard[-1].task.state == "completed"
    assert next(news.task.state for news in heard if news.task is not None) in {"queued", "running"}
    assert all(news.task is None or not news.more for news in heard)
    assert "".join(record.text for record in view.activity) == "".join(f"{word} " for word in words)
    assert max(len(news.records) for news in heard) == 3


async def test_a_follower_is_answered_from_now_on_from_a_place_or_with_that_there_is_no_such_place(
    start: Any, door: Any, refusal: Any, pool: Pool
) -> None:
    await start(slots=0)
    created = await door.create()
    await pool.execute(
        "insert into task_activity (task_id, seq, revision, attempt, body, size)"
        " select $1, n, n, 1, json_build_object('kind', 'status', 'text', 'n' || n), 40 from generate_series(1, 5) n",
        created.id,
    )

    now = await door.ask(ReadTaskNews(task_id=created.id))
    since = await door.ask(ReadTaskNews(task_id=created.id, after=3, version=0))
    nowhere = await door.ask(ReadTaskNews(task_id=created.id, after=6, version=0))

    assert (now.records, now.revision, now.task, now.reset) == ([], 5, created, False)
    assert ([record.seq for record in since.records], since.task, since.more) == ([4, 5], None, False)
    assert (nowhere.records, nowhere.revision, nowhere.reset) == ([], 5, True)
    assert (await refusal(door.ask(ReadTaskNews(task_id="none")))).http_status == 404


async def test_a_runner_that_is_replaced_in_mid_sentence_is_followed_on(start: Any, door: Any) -> None:
    first = await start()
    created = await door.create("say one\n1: sleep 30\nsay two\nanswer done")
    following = asyncio.create_task(followed(door, created.id))
    async with asyncio.timeout(10):
        while not (await door.get(created.id)).activity:
            await asyncio.sleep(0.02)

    await start()
    await first.stop()
    heard, records = await following
    view = await door.get(created.id)

    assert view.attempt_count == 2
    assert records == {record.seq: record for record in view.activity}
    assert [record.text for record in view.activity if record.kind == "text"] == ["one ", "one ", "two "]
    assert heard[-1].task is not None
