"""Lines that go silent, slow or dead between a runner and its servers, a clock that is wrong, a disk that is full."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Pool, open_pool
from popagent_kit.errors import UnavailableError
from popagent_proto.task_runner.tasks import ListTasks
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.task_running import EFFECTS, start_runner

pytestmark = [pytest.mark.full, pytest.mark.timeout(240)]
Mode = Literal["open", "silent", "slow", "late", "cut"]
SLOW_BYTES: Final = 1_000
LATE_S: Final = 2.0
LEASE_S: Final = 8.0


class Line:
    """A way to a server, both directions of which can go wrong while connections stand."""

    def __init__(self, host: str, port: int) -> None:
        self._there = host, port
        self._mode: Mode = "open"
        self._changed = asyncio.Event()
        self._carrying: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None

    async def open(self) -> int:
        """Listen, and return the port."""
        self.server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])

    def become(self, mode: Mode) -> None:
        """Behave so from now on: `silent` loses nothing and passes nothing on, `cut` ends every connection."""
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode == "cut":
            for writer in tuple(self._writers):
                writer.transport.abort()

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        self.become("cut")
        for task in tuple(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "cut":
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(*self._there)
        ends = {writer, far_writer}
        self._writers |= ends
        for source, target in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._carry(source, target))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)
        await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)
        self._writers -= ends

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                while self._mode == "silent":
                    await self._changed.wait()
                if self._mode == "late":
                    await asyncio.sleep(LATE_S)
                for start in range(0, len(data), SLOW_BYTES) if self._mode == "slow" else (0,):
                    piece = data[start : start + SLOW_BYTES] if self._mode == "slow" else data
                    target.write(piece)
                    await target.drain()
                    if self._mode == "slow":
                        await asyncio.sleep(len(piece) / SLOW_BYTES)
        target.close()


def through(dsn: str, port: int) -> str:
    """Return the address over a line that listens on `port`."""
    parts = urlsplit(dsn)
    user = f"{parts.username}:{parts.password}@" if parts.username else ""
    return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}"))


@pytest.fixture
async def line(dsn: str) -> AsyncIterator[tuple[Line, str]]:
    """A line to the database of the test, and the DSN that leads over it."""
    parts = urlsplit(dsn)
    made = Line(parts.hostname or "127.0.0.1", parts.port or 5432)
    yield made, through(dsn, await made.open())
    await made.close()


Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn(dsn: str, suite_nats: NatsServer) -> Iterator[Spawn]:
    """Return `spawn(over=dsn, nats=url, slots=1, **env)`: a runner process; its lease outlasts a busy machine."""
    spawned: list[subprocess.Popen[bytes]] = []

    def spawning(*, over: str = dsn, nats: str = suite_nats.url, slots: int = 1, **env: str) -> subprocess.Popen[bytes]:
        of = (over, nats, str(uuid4()), str(slots), str(LEASE_S))
        command = [sys.executable, "-m", "popagent_testing.task_running", *of]
        spawned.append(subprocess.Popen(command, env={**os.environ, **env}))
        return spawned[-1]

    yield spawning
    for process in spawned:
        process.kill()
        process.wait()


async def until_true(pool: Pool, condition: str, *args: object, timeout_s: float = 60) -> None:
    async with asyncio.timeout(timeout_s):
        while not await pool.fetchval(f"select {condition}", *args):
            await asyncio.sleep(0.02)


RUNS: Final = "exists (select 1 from tasks where id = $1 and state = 'running' and started_attempt = attempt)"
ONE_EACH: Final = "select task_id, count(*) from effects group by task_id having count(*) <> 1"


@pytest.mark.parametrize("mode", ["silent", "slow", "late", "cut"])
async def test_a_runner_whose_line_to_the_database_goes_bad_is_replaced_and_comes_back_with_every_place_free(
    start: Any, door: Any, pool: Pool, spawn: Spawn, line: tuple[Line, str], mode: Mode
) -> None:
    way, over = line
    await start(slots=0)
    spawn(over=over)
    held = await door.create("1: sleep 12\nact letter\nanswer sent")
    await until_true(pool, RUNS, held.id)
    first = await pool.fetchval("select owner from tasks where id = $1", held.id)

    way.become(mode)
    other = spawn()
    done = await door.until(held.id, "completed", timeout_s=60)
    way.become("open")
    other.terminate()
    later = [await door.create("act letter\nanswer sent") for _ in range(3)]
    for task in later:
        await door.until(task.id, "completed", timeout_s=90)

    # A line that passes something on may leave the first one its lease.
    assert done.attempt_count > 1 or mode in {"slow", "late"}
    assert await pool.fetch(ONE_EACH) == []
    assert await pool.fetchval("select count(*) from effects") == 4
    assert await pool.fetchval("select count(*) from tasks where state = 'running'") == 0
    assert first is not None


async def test_a_runner_whose_line_to_nats_is_silent_goes_on_and_tells_of_all_when_it_speaks_again(
    start: Any, door: Any, pool: Pool, spawn: Spawn, suite_nats: NatsServer
) -> None:
    parts = urlsplit(suite_nats.url)
    way = Line(parts.hostname or "127.0.0.1", parts.port or 4222)
    over = f"nats://127.0.0.1:{await way.open()}"
    try:
        await start(slots=0)
        spawn(nats=over)
        before = await door.create("answer one")
        await door.until(before.id, "completed", timeout_s=60)

        way.become("silent")
        tasks = [await door.create("act letter\nanswer two") for _ in range(3)]
        for task in tasks:
            await door.until(task.id, "completed", timeout_s=60)
        way.become("open")

        for task in tasks:
            verbs = [verb for verb, _ in await door.until_told(task.id, 3, timeout_s=60)]
            assert verbs == ["changed", "started", "stopped"]
        assert await pool.fetch(ONE_EACH) == []
    finally:
        await way.close()


SHIFT: Final = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) { const char *s = getenv("SHIFT_S"); return s ? atol(s) : 0; }

int clock_gettime(clockid_t id, struct timespec *ts) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, ts);
    if (!done && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) ts->tv_sec += shift();
    return done;
}

time_t time(time_t *at) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (at) *at = ts.tv_sec;
    return ts.tv_sec;
}

int gettimeofday(struct timeval *tv, void *zone) {
    struct timespec ts;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture
def shifted(tmp_path: Path) -> Callable[[int], dict[str, str]]:
    """Return `shifted(seconds)`: the environment of a process whose wall clock is wrong by so much."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler to make a wrong clock with")
    source, library = tmp_path / "shift.c", tmp_path / "shift.so"
    source.write_text(SHIFT)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)

    def env(seconds: int) -> dict[str, str]:
        made = {"LD_PRELOAD": str(library), "SHIFT_S": str(seconds)}
        clock = "import time, datetime; print(datetime.datetime.now().timestamp(), time.monotonic())"
        told = [
            subprocess.run([sys.executable, "-c", clock], env={**os.environ, **more}, capture_output=True, check=True)
            for more in ({}, made)
        ]
        right, wrong = ([float(word) for word in each.stdout.split()] for each in told)
        assert abs(wrong[0] - right[0] - seconds) < 30
        assert abs(wrong[1] - right[1]) < 30
        return made

    return env


@pytest.mark.parametrize("seconds", [600, -600])
async def test_a_runner_whose_clock_is_wrong_loses_no_lease_and_takes_none(
    start: Any, door: Any, pool: Pool, spawn: Spawn, shifted: Callable[[int], dict[str, str]], seconds: int
) -> None:
    await start(slots=0)
    wrong, right = spawn(slots=3, **shifted(seconds)), spawn(slots=3)
    # Longer than a lease; the second attempts wait for a time that is written down.
    long = [await door.create("sleep 12\nact letter\nanswer sent") for _ in range(6)]
    again = [await door.create("1: fail provider\nact letter\nanswer sent") for _ in range(4)]

    done = [await door.until(task.id, "completed", timeout_s=90) for task in (*long, *again)]
    owners = await pool.fetchval("select count(*) from runners")
    off = await pool.fetchval(
        "select max(abs(extract(epoch from clock_timestamp() - x))) from tasks,"
        " unnest(array[created_at, started_at, ended_at, run_at]) x"
    )

    assert (wrong.poll(), right.poll()) == (None, None)
    assert owners >= 2
    assert [task.attempt_count for task in done] == [1] * 6 + [2] * 4
    assert await pool.fetch(ONE_EACH) == []
    assert off < 120


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB; skipped where none may be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no file system may be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_full_disk_refuses_new_tasks_in_words_shows_what_there_is_and_goes_on_when_there_is_room(
    small_disk: Path, private_postgres: PostgresServer, suite_nats: NatsServer, connect_as: Any
) -> None:
    # What the server writes ahead lies elsewhere: without room for that it ends, and its supervisor starts it again.
    place = small_disk / "space"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    admin = await asyncpg.connect(private_postgres.dsn())
    try:
        await admin.execute(f"create tablespace small location '{place}'")
        await admin.execute("create database popagent tablespace small")
    finally:
        await admin.close()
    await bootstrap(private_postgres.dsn("popagent"), ["task-runner"], {"task-runner": "secret"})
    dsn = role_dsn(private_postgres.dsn("popagent"), "task-runner", "secret")
    await migrate(dsn, "task-runner")
    pool = await open_pool(dsn, application_name="test", max_size=2)
    await pool.execute(EFFECTS)
    from .conftest import Door  # noqa: PLC0415 (the one of the fixture looks at another database)

    door = Door(await connect_as("gateway"), pool)
    await door.hear()
    runner = await start_runner(dsn, suite_nats.url)
    try:
        before = await door.create("answer one")
        await door.until(before.id, "completed", timeout_s=60)
        await pool.execute("create table ballast as select 1 as n, repeat('x', 2000) as words limit 0")
        await _fill(pool)

        made, refused = await _until_refused(door)
        listed = await door.ask(ListTasks(limit=200))
        await pool.execute("drop table ballast")
        after = await door.create("answer three")
        for task_id in (*made, after.id):
            await door.until(task_id, "completed", timeout_s=60)
        for task_id in (*made, after.id):
            await door.until_told(task_id, 3, timeout_s=60)
    finally:
        await runner.stop()
        await pool.close()

    assert (refused.http_status, refused.retry_after_s) == (503, 30)
    assert "disk" in refused.message
    assert before.id in {task.id for task in listed.items}


async def _fill(pool: Pool) -> None:
    """Store until there is no more room."""
    more = "insert into ballast select n, repeat(md5(n::text), 60) from generate_series(1, $1::integer) n"
    for rows in (2_000, 100, 1):
        with suppress(UnavailableError):
            while True:
                await pool.execute(more, rows)


async def _until_refused(door: Any) -> tuple[list[str], UnavailableError]:
    """Give tasks until one is refused; the pages that there are take some."""
    made: list[str] = []
    while True:
        try:
            made.append((await door.create("answer two " + "x" * 50_000)).id)
        except UnavailableError as error:
            return made, error
