"""Leased rows: how fast jobs are stored, started and drained. PostgreSQL with fsync on, wake-ups over a real NATS."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import uvloop
from beside import measure_peers
from figures import Figures, percentile

from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import KERNEL, migrate, migrations_folder
from popagent_db.pool import Pool, open_pool
from popagent_rows.jobs import Job, Jobs
from popagent_rows.leased import Holder
from popagent_rows.pulse import Pulse
from popagent_testing.servers import NatsServer, PostgresServer

SERVICE = "gateway"
PASSWORD = "bench"
WAKE = "popagent.gateway.wake.jobs.v1"
ONE_CALLER = 3_000
CALLERS = 20
BY_CALLERS = 10_000
DRAINED = 5_000
SLOTS = 10
OPEN_LOOP_PER_S = 20
OPEN_LOOP_S = 10


async def enqueue(pool: Pool, jobs: Jobs, count: int) -> None:
    for _ in range(count):
        async with pool.acquire() as connection:
            await jobs.enqueue(connection, "append", {"at": time.perf_counter()})


async def measure_enqueue(pool: Pool, jobs: Jobs, figures: Figures) -> None:
    await enqueue(pool, jobs, 200)
    started = time.perf_counter()
    await enqueue(pool, jobs, ONE_CALLER)
    figures.add("enqueue, one caller", ONE_CALLER / (time.perf_counter() - started), "jobs/s", 1_500, "higher")
    started = time.perf_counter()
    await asyncio.gather(*(enqueue(pool, jobs, BY_CALLERS // CALLERS) for _ in range(CALLERS)))
    figures.add("enqueue, 20 callers", BY_CALLERS / (time.perf_counter() - started), "jobs/s", 4_000, "higher")
    await pool.execute("truncate jobs")


class Body:
    """The work of a job: one line in a file, as in the comparison that set the bars."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.starts: list[float] = []
        self.waits_s: list[float] = []

    async def __call__(self, job: Job) -> None:
        now = time.perf_counter()
        self.starts.append(now)
        self.waits_s.append(now - job.input["at"])
        with self.file.open("a") as out:
            out.write(f"{job.id[:29]}\n")


async def measure_drain(pool: Pool, jobs: Jobs, body: Body, pulse: Pulse, figures: Figures) -> None:
    await asyncio.gather(*(enqueue(pool, jobs, DRAINED // CALLERS) for _ in range(CALLERS)))
    jobs.start(pulse)
    while await pool.fetchval("select count(*) from jobs where state <> 'completed'"):
        await asyncio.sleep(0.1)
    starts = body.starts
    figures.add("drain", (len(starts) - 1) / (starts[-1] - starts[0]), "jobs/s", 2_000, "higher")
    body.starts, body.waits_s = [], []


async def measure_latency(pool: Pool, jobs: Jobs, body: Body, client: nats.NATS, figures: Figures) -> None:
    started = time.perf_counter()
    for number in range(OPEN_LOOP_PER_S * OPEN_LOOP_S):
        await asyncio.sleep(max(0.0, started + number / OPEN_LOOP_PER_S - time.perf_counter()))
        await enqueue(pool, jobs, 1)
        await client.publish(WAKE)
    while len(body.waits_s) < OPEN_LOOP_PER_S * OPEN_LOOP_S:
        await asyncio.sleep(0.1)
    waits_ms = [wait * 1_000 for wait in body.waits_s]
    figures.add("enqueue to start, p50", percentile(waits_ms, 0.5), "ms", 5)
    figures.add("enqueue to start, p99", percentile(waits_ms, 0.99), "ms", 20)


async def prepare(admin_dsn: str, folder: Path) -> str:
    """Make the kernel's tables, and return the service's DSN."""
    await bootstrap(admin_dsn, [SERVICE], {SERVICE: PASSWORD})
    shutil.copytree(migrations_folder() / KERNEL, folder / "migrations" / KERNEL)
    dsn = role_dsn(admin_dsn, SERVICE, PASSWORD)
    await migrate(dsn, SERVICE, folder / "migrations")
    return dsn


async def main() -> None:
    figures = Figures("rows")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=figures.folder)))
        postgres, broker = PostgresServer(folder, settings={"shared_buffers": "96MB"}), NatsServer(folder)
        for server in (postgres, broker):
            server.start()
            stack.callback(server.stop)
        dsn = await prepare(postgres.dsn("bench"), folder)
        pool = await open_pool(dsn, application_name="bench", max_size=8)
        stack.push_async_callback(pool.close)
        jobs, body, pulse = (
            Jobs(SERVICE, pool, Holder.of_this_process(), slots=SLOTS),
            Body(folder / "out"),
            Pulse(pool),
        )
        jobs.handles("append")(body)
        client = await nats.connect(broker.url)
        stack.push_async_callback(client.close)

        async def wake(_: object) -> None:
            jobs.worker.wake()

        await client.subscribe(WAKE, cb=wake)
        await measure_enqueue(pool, jobs, figures)
        pulse.start()
        stack.push_async_callback(pulse.stop)
        stack.push_async_callback(jobs.stop)
        await measure_drain(pool, jobs, body, pulse, figures)
        await measure_latency(pool, jobs, body, client, figures)
        measure_peers(postgres.dsn, figures)
    figures.write()


if __name__ == "__main__":
    uvloop.run(main())
