"""Background tasks: created by one and by 20 callers, carried out by an instant executor, listed among 100,000.

PostgreSQL with fsync on, a real NATS with the suite's rights. Every event is stored, published and heard.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import uvloop
from beside import measure_peers
from figures import Figures, percentile

from popagent_bus import Bus
from popagent_bus.streams import declare
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Pool, open_pool
from popagent_kit.ids import new_id
from popagent_proto import matrix
from popagent_proto.task_runner.tasks import CreateTask, CreateTaskBody, GetTask, ListTasks
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.suite_bus import PASSWORDS
from popagent_testing.task_running import start_runner

SERVICE = "task-runner"
PASSWORD = "bench"
ONE_CALLER = 1_500
CALLERS = 20
BY_CALLERS = 4_000
SHARED = 1_500
OPEN_LOOP_PER_S = 10
OPEN_LOOP_S = 10
LISTED = 100_000
LONG_TRANSCRIPTS = 40
LISTS = 200
SLOTS = 10

FILL = """
insert into tasks (id, state, source, workspace_id, title, prompt, output, max_attempts, attempt, created_at)
select 'old' || n, (array['completed', 'completed', 'completed', 'failed', 'cancelled'])[1 + n % 5], 'user',
    'w' || n % 20, 'Task number ' || n, repeat('What is to be done. ', 100), repeat('It was done. ', 100), 3, 1,
    clock_timestamp() - make_interval(secs => n)
from generate_series(1, $1::integer) n
"""
FILL_TRANSCRIPTS = """
insert into task_activity (task_id, seq, revision, attempt, body, size)
select 'old' || t, n, n, 1, json_build_object('kind', 'text', 'text', repeat(md5(n::text), 125)), 4050
from generate_series(1, $1::integer) t, generate_series(1, 256) n
"""


@dataclass(frozen=True)
class Place:
    """Where runners find their tables and each other."""

    dsn: str
    url: str


async def create(bus: Bus, count: int) -> None:
    for _ in range(count):
        await bus.ask(CreateTask(command_id=new_id(), body=CreateTaskBody(prompt="answer done")))


async def measure_creation(bus: Bus, pool: Pool, figures: Figures) -> None:
    """Add rates, and what each task cost all processes but this one: that says something on a busy machine too."""
    await create(bus, 100)
    for callers, count, bar in ((1, ONE_CALLER, 500), (CALLERS, BY_CALLERS, 1_200)):
        label = "one caller" if callers == 1 else f"{callers} callers"
        before_s, started = spent_s(), time.perf_counter()
        await asyncio.gather(*(create(bus, count // callers) for _ in range(callers)))
        figures.add(f"tasks-create, {label}", count / (time.perf_counter() - started), "tasks/s", bar, "higher")
        await published(pool)
        figures.add(f"CPU a task of {label}", (spent_s() - before_s) / count * 1e6, "us", None)
    await emptied(pool)


def spent_s() -> float:
    """Return the CPU seconds of PostgreSQL, NATS and runner so far."""
    spent = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            spent += sum(process.cpu_times()[:2])
    return spent


async def by_callers(bus: Bus, count: int) -> None:
    await asyncio.gather(*(create(bus, count // CALLERS) for _ in range(CALLERS)))


async def published(pool: Pool) -> None:
    """Wait until no event waits."""
    while await pool.fetchval("select count(*) from outbox where sent_at is null"):
        await asyncio.sleep(0.1)


async def emptied(pool: Pool) -> None:
    """Wait until every event is published, and begin anew."""
    await published(pool)
    await pool.execute("truncate tasks cascade")


async def drained(pool: Pool) -> None:
    while await pool.fetchval("select count(*) from tasks where state in ('queued', 'running')"):
        await asyncio.sleep(0.05)


@contextmanager
def runners(place: Place, count: int, slots: int, mode: str = "run") -> Iterator[None]:
    """Runner processes; `serve` answers the callers and runs nothing, `run` runs tasks and answers nobody."""
    command = [sys.executable, __file__, mode, place.dsn, place.url, str(slots)]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


async def measure_whole_tasks(bus: Bus, pool: Pool, place: Place, figures: Figures) -> None:
    """Let one runner process, then two, do the same work."""
    rates = []
    for count in (1, 2):
        await emptied(pool)
        await by_callers(bus, SHARED)
        with runners(place, count, SLOTS):
            while not (before := await pool.fetchval("select count(*) from tasks where state = 'completed'")):
                await asyncio.sleep(0.01)
            started = time.perf_counter()
            await drained(pool)
            rates.append((SHARED - before) / (time.perf_counter() - started))
    figures.add("whole tasks, one runner process", rates[0], "tasks/s", 30, "higher")
    figures.add("two runner processes against one", rates[1] / rates[0], "", 0.95, "higher")


async def measure_wait(bus: Bus, pool: Pool, place: Place, figures: Figures) -> None:
    await emptied(pool)
    with runners(place, 1, SLOTS):
        await create(bus, 1)
        await drained(pool)
        started = time.perf_counter()
        for number in range(OPEN_LOOP_PER_S * OPEN_LOOP_S):
            await asyncio.sleep(max(0.0, started + number / OPEN_LOOP_PER_S - time.perf_counter()))
            await create(bus, 1)
        await drained(pool)
    waits = await pool.fetch("select extract(epoch from started_at - created_at)::float8 * 1000 as ms from tasks")
    waits_ms = [row["ms"] for row in waits][1:]
    figures.add("create to start, p50", percentile(waits_ms, 0.5), "ms", 20)
    figures.add("create to start, p95", percentile(waits_ms, 0.95), "ms", None)


async def measure_lists(bus: Bus, pool: Pool, figures: Figures) -> None:
    await emptied(pool)
    async with pool.acquire() as conn:
        await conn.execute(FILL, LISTED)
        await conn.execute(FILL_TRANSCRIPTS, LONG_TRANSCRIPTS)
        await conn.execute("analyze tasks")
    kinds = (ListTasks(limit=50), ListTasks(state=["failed"]), ListTasks(workspace_id="w7"), ListTasks(limit=200))
    times_ms = []
    for number in range(LISTS):
        started = time.perf_counter()
        await bus.ask(kinds[number % len(kinds)])
        times_ms.append((time.perf_counter() - started) * 1_000)
    figures.add("task list among 100,000, p95", percentile(times_ms, 0.95), "ms", 50)
    times_ms = []
    for number in range(20):
        started = time.perf_counter()
        await bus.ask(GetTask(task_id=f"old{1 + number}"))
        times_ms.append((time.perf_counter() - started) * 1_000)
    figures.add("task with 1 MB of transcript, p95", percentile(times_ms, 0.95), "ms", None)


async def main() -> None:
    figures = Figures("tasks")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=figures.folder)))
        postgres = PostgresServer(folder, settings={"shared_buffers": "96MB"})
        broker = NatsServer(folder, config=matrix.nats_authorization(PASSWORDS))
        for server in (postgres, broker):
            server.start()
            stack.callback(server.stop)
        await declare(broker.url, matrix.ADMIN_USER, PASSWORDS["admin"])
        await bootstrap(postgres.dsn("bench"), [SERVICE], {SERVICE: PASSWORD})
        place = Place(role_dsn(postgres.dsn("bench"), SERVICE, PASSWORD), broker.url)
        await migrate(place.dsn, SERVICE)
        pool = await open_pool(place.dsn, application_name="bench", max_size=2)
        stack.push_async_callback(pool.close)
        door = matrix.BY_NAME["gateway"]
        bus = await Bus.connect(broker.url, service="gateway", user=door.role, password=PASSWORDS["gateway"])
        stack.push_async_callback(bus.drain)
        stack.enter_context(runners(place, 1, 0, "serve"))
        await bus.ask(ListTasks(), patience_s=30)
        await measure_creation(bus, pool, figures)
        await measure_whole_tasks(bus, pool, place, figures)
        await measure_wait(bus, pool, place, figures)
        await measure_lists(bus, pool, figures)
        measure_peers(postgres.dsn, figures)
    figures.write()


async def work(mode: str, dsn: str, url: str, slots: str) -> None:
    """Be a runner process until SIGTERM."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    serving = mode == "serve"
    runner = await start_runner(
        dsn, url, slots=int(slots), queue_depth=100_000, lease_s=30.0, answers=serving, works=not serving
    )
    await asked.wait()
    await runner.stop()


if __name__ == "__main__":
    uvloop.run(work(*sys.argv[1:]) if len(sys.argv) > 1 else main())
