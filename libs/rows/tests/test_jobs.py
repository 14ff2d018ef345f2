from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import InvalidInputError
from popagent_proto.common import JobView
from popagent_rows import jobs as jobs_module
from popagent_rows.jobs import ERROR_LENGTH, Job, JobRow, Jobs, reason_of
from popagent_rows.leased import Holder, LeasedRows
from popagent_rows.pulse import Pulse

ROWS = LeasedRows("jobs", JobRow, lease_s=1.0, beat_s=0.3)


@pytest.fixture
async def jobs(pool: Pool, pulse: Pulse, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Jobs]:
    monkeypatch.setattr(jobs_module, "BACKOFF_S", 0.01)
    made = Jobs("docs-indexer", pool, Holder.of_this_process(), rows=ROWS)
    made.start(pulse)
    yield made
    await made.stop(drain_s=0)


async def enqueue(pool: Pool, jobs: Jobs, kind: str, **more: Any) -> str:
    async with pool.transaction() as conn:
        job = await jobs.enqueue(conn, kind, {"page": 7}, **more)
    jobs.worker.wake()
    return job.id


async def view(pool: Pool, jobs: Jobs, job_id: str) -> JobView:
    async with pool.acquire() as conn:
        found = await jobs.get(conn, job_id)
    assert found is not None
    return found


async def until_ended(pool: Pool, jobs: Jobs, job_id: str) -> JobView:
    async with asyncio.timeout(10):
        while (found := await view(pool, jobs, job_id)).state not in ("completed", "failed"):
            await asyncio.sleep(0.02)
    return found


async def test_a_job_reports_its_progress_and_leaves_its_output(pool: Pool, jobs: Jobs) -> None:
    reported, go_on = asyncio.Event(), asyncio.Event()

    @jobs.handles("index")
    async def index(job: Job) -> dict[str, Any]:
        await job.report(0.5, "half of\nthe pages")
        reported.set()
        await go_on.wait()
        return {"indexed": job.input["page"]}

    job_id = await enqueue(pool, jobs, "index")
    await reported.wait()
    halfway = await view(pool, jobs, job_id)
    go_on.set()
    ended = await until_ended(pool, jobs, job_id)

    assert job_id.startswith("docs-indexer_")
    assert (halfway.state, halfway.progress, halfway.note) == ("running", 0.5, "half of the pages")
    assert (ended.state, ended.progress, ended.error) == ("completed", 1.0, None)
    assert ended.result == {"indexed": 7}


async def test_the_same_key_is_the_same_job(pool: Pool, jobs: Jobs) -> None:
    runs = 0

    @jobs.handles("index")
    async def index(job: Job) -> None:
        nonlocal runs
        runs += 1

    ids = await asyncio.gather(*(enqueue(pool, jobs, "index", key="folder-1") for _ in range(5)))
    await until_ended(pool, jobs, ids[0])

    assert len(set(ids)) == 1
    assert runs == 1


async def test_a_failing_job_is_tried_again_and_then_ends_with_the_reason(pool: Pool, jobs: Jobs) -> None:
    attempts: list[int] = []

    @jobs.handles("index")
    async def index(job: Job) -> None:
        attempts.append(job.attempt)
        raise ValueError("token=sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD was refused")

    ended = await until_ended(pool, jobs, await enqueue(pool, jobs, "index", max_attempts=3))

    assert attempts == [1, 2, 3]
    assert ended.state == "failed"
    assert ended.error is not None
    assert "ValueError" in ended.error
    assert "abcdefghijklmnop" not in ended.error


def test_a_credential_is_gone_before_a_reason_is_cut() -> None:
    said = "x" * (ERROR_LENGTH - 30)

    assert "CANARY" not in reason_of(ValueError(f"{said} ghp_CANARY0123456789abcdef"))


async def test_an_error_that_trying_again_cannot_mend_ends_the_job_at_once(pool: Pool, jobs: Jobs) -> None:
    attempts: list[int] = []

    @jobs.handles("index")
    async def index(job: Job) -> None:
        attempts.append(job.attempt)
        raise InvalidInputError("This folder holds no text.")

    ended = await until_ended(pool, jobs, await enqueue(pool, jobs, "index"))

    assert attempts == [1]
    assert ended.error == "This folder holds no text."


async def test_a_job_whose_process_died_every_time_fails(pool: Pool, jobs: Jobs) -> None:
    async with pool.acquire() as conn:
        job_id = (await jobs.enqueue(conn, "index", {}, max_attempts=1, delay_s=60)).id
    await pool.execute(
        "update jobs set state = 'running', attempt = 1, owner = gen_random_uuid(), boot_id = gen_random_uuid(),"
        " lease_until = clock_timestamp()"
    )

    ended = await until_ended(pool, jobs, job_id)

    assert ended.state == "failed"
    assert ended.error == "its process was lost in every attempt"


async def test_an_unknown_id_is_no_job_and_ended_jobs_are_pruned(pool: Pool, jobs: Jobs) -> None:
    @jobs.handles("index")
    async def index(job: Job) -> None:
        pass

    job_id = await enqueue(pool, jobs, "index")
    await until_ended(pool, jobs, job_id)

    async with pool.acquire() as conn:
        assert await jobs.get(conn, "docs-indexer_none") is None
    assert await jobs.prune() == 0
    assert await jobs.prune(timedelta(0)) == 1
