"""Those who follow jobs are told of every step, and a key may be used again once its job is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto.chat.jobs import JobChanged
from popagent_proto.common import JobView
from popagent_rows import jobs as jobs_module
from popagent_rows.jobs import Job, JobNews, JobRow, Jobs
from popagent_rows.leased import Holder, LeasedRows
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse

ROWS = LeasedRows("jobs", JobRow, lease_s=1.0, beat_s=0.3)


async def published(subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
    return 1


@pytest.fixture
async def jobs(pool: Pool, pulse: Pulse) -> AsyncIterator[Jobs]:
    news = JobNews(Outbox(pool, published), lambda job, n: JobChanged(aggregate_id=job.id, version=n, job=job))
    made = Jobs("gateway", pool, Holder.of_this_process(), rows=ROWS, news=news)
    made.start(pulse)
    yield made
    await made.stop(drain_s=0)


async def told(pool: Pool, job_id: str) -> list[JobChanged]:
    rows = await pool.fetch("select payload from outbox where aggregate_id = $1 order by position", job_id)
    return [JobChanged.decode(row["payload"].encode()) for row in rows]


async def until_over(pool: Pool, jobs: Jobs, job_id: str) -> JobView:
    async with asyncio.timeout(10):
        while True:
            async with pool.acquire() as conn:
                found = await jobs.get(conn, job_id)
            assert found is not None
            if found.state in ("completed", "failed"):
                return found
            await asyncio.sleep(0.02)


async def enqueue(pool: Pool, jobs: Jobs, kind: str, key: str | None = None, *, again: bool = False) -> JobView:
    async with pool.transaction() as conn:
        job = await jobs.enqueue(conn, kind, {}, key=key, again=again, title="Work", about="w1")
    jobs.worker.wake()
    return job


async def test_every_step_is_told_in_order_and_what_comes_too_soon_is_not_stored(pool: Pool, jobs: Jobs) -> None:
    @jobs.handles("count")
    async def count(job: Job) -> dict[str, int]:
        for share in (0.1, 0.2, 0.3):
            await job.report(share, f"{share}")
        return {"counted": 3}

    job = await enqueue(pool, jobs, "count")
    done = await until_over(pool, jobs, job.id)

    events = await told(pool, job.id)
    assert [event.version for event in events] == [0, 1, 2]
    assert [(event.job.state, event.job.progress) for event in events] == [
        ("queued", 0.0),
        ("running", pytest.approx(0.1)),
        ("completed", 1.0),
    ]
    assert events[-1].job.wire() == done.wire()
    assert (done.result, done.title, done.about, done.note) == ({"counted": 3}, "Work", "w1", "")


async def test_a_failure_is_told_also_of_a_job_whose_process_was_lost(pool: Pool, jobs: Jobs) -> None:
    @jobs.handles("fail")
    async def fail(job: Job) -> None:
        raise InvalidInputError("This folder holds no text.")

    refused = await enqueue(pool, jobs, "fail")
    await until_over(pool, jobs, refused.id)
    lost = f"gateway_{new_id()}"
    await pool.execute(
        "insert into jobs (id, kind, state, attempt, max_attempts, owner, boot_id, lease_until) values"
        " ($1, 'fail', 'running', 5, 5, gen_random_uuid(), gen_random_uuid(), clock_timestamp())",
        lost,
    )
    await until_over(pool, jobs, lost)

    ends = [(await told(pool, each))[-1].job for each in (refused.id, lost)]
    assert [(job.state, job.error) for job in ends] == [
        ("failed", "This folder holds no text."),
        ("failed", "its process was lost in every attempt"),
    ]


async def test_a_key_makes_another_job_only_after_the_first_is_over_and_only_if_that_is_wanted(
    pool: Pool, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "BACKOFF_S", 0.01)
    go_on = asyncio.Event()

    @jobs.handles("wait")
    async def wait(job: Job) -> None:
        await go_on.wait()

    first = await enqueue(pool, jobs, "wait", "w1", again=True)
    during = [(await enqueue(pool, jobs, "wait", "w1", again=True)).id for _ in range(3)]
    go_on.set()
    await until_over(pool, jobs, first.id)
    kept = await enqueue(pool, jobs, "wait", "w1")
    go_on.clear()
    after = await asyncio.gather(*(enqueue(pool, jobs, "wait", "w1", again=True) for _ in range(4)))
    go_on.set()

    assert {*during, kept.id} == {first.id}
    assert len({job.id for job in after}) == 1
    assert after[0].id != first.id


async def test_those_that_are_not_over_are_listed_first(pool: Pool, jobs: Jobs) -> None:
    @jobs.handles("quick")
    async def quick(job: Job) -> None:
        pass

    async with pool.transaction() as conn:
        waiting = await jobs.enqueue(conn, "quick", {}, delay_s=60)
    done = [await enqueue(pool, jobs, "quick") for _ in range(2)]
    for job in done:
        await until_over(pool, jobs, job.id)

    async with pool.acquire() as conn:
        listed = await jobs.newest(conn)
        running = await jobs.running(conn, "quick")

    assert [job.id for job in listed] == [waiting.id, done[1].id, done[0].id]
    assert running == []
