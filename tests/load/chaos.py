"""Tasks, schedules and posts arrive while everything is killed at random; at the end the books must balance.

`make soak MINUTES=30`, or `make bench NAME=chaos` for two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx2
import psutil
import uvloop

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from tests.load.figures import Figures
from tests.suite import POSTGRES, Suite, SuiteError
from tests.talk import Talk
from tests.tasks import application_database

ENDED: Final = ("completed", "failed", "cancelled", "dead-letter")
TASK_EVERY_S: Final = 0.7
POST_EVERY_S: Final = 2.0
SCHEDULES: Final = 3
CALM_S: Final = (4.0, 15.0)
FROZEN_S: Final = 8.0
BACK_S: Final = 120.0
QUIET_S: Final = 600.0
# What is killed, and how; a frozen program is thawed.
LUCK: Final = (
    ("gateway", signal.SIGKILL),
    ("chat", signal.SIGKILL),
    ("chat", signal.SIGTERM),
    ("task-runner", signal.SIGKILL),
    ("task-runner", signal.SIGTERM),
    ("task-runner", signal.SIGSTOP),
    ("scheduler", signal.SIGKILL),
    ("nats", signal.SIGKILL),
    (POSTGRES, signal.SIGQUIT),
)
SIZES: Final = """
select 'events' as name, (select count(*) from task_runner.outbox) as rows union all
select 'runners', (select count(*) from task_runner.runners) union all
select 'jobs', (select count(*) from chat.jobs)
"""


@dataclass
class Books:
    """What was acknowledged, and what was done to the suite meanwhile."""

    tasks: set[str] = field(default_factory=set)
    posts: set[str] = field(default_factory=set)
    schedules: set[str] = field(default_factory=set)
    luck: dict[str, int] = field(default_factory=dict)
    memory_mib: list[float] = field(default_factory=list)


async def insisted(talk: Talk, path: str, body: dict[str, Any]) -> str:
    """Send until it is acknowledged, always under one key, and return the id."""
    key = new_id()
    while True:
        try:
            answer = await talk.http.post(path, json=body, headers={"idempotency-key": key})
            if answer.status_code == 201:
                return str(answer.json()["id"])
            if answer.status_code not in (429, 500, 502, 503, 504):
                raise RuntimeError(f"{path}: {answer.status_code} {answer.text}")
        except httpx2.HTTPError:
            pass  # the door is being started again
        await asyncio.sleep(0.5)


async def paused(talk: Talk, schedule_id: str) -> None:
    """Let the schedule make nothing more; its history stays."""
    while True:
        try:
            stored = await talk.json("GET", "/api/schedules")
            revision = next(each["revision"] for each in stored["items"] if each["id"] == schedule_id)
            await talk.json("PATCH", f"/api/schedules/{schedule_id}", {"enabled": False, "revision": revision})
        except httpx2.HTTPError:
            await asyncio.sleep(0.5)
        else:
            return


async def give(talk: Talk, books: Books, until: float) -> None:
    number = 0
    while time.monotonic() < until:
        number += 1
        books.tasks.add(await insisted(talk, "/api/tasks", {"prompt": f"Report number {number}.", "maxAttempts": 10}))
        await asyncio.sleep(TASK_EVERY_S)


async def post(talk: Talk, books: Books, until: float) -> None:
    while time.monotonic() < until:
        books.posts.add(await insisted(talk, "/api/channels/general/messages", {"body": f"Said {len(books.posts)}."}))
        await asyncio.sleep(POST_EVERY_S)


async def bad_luck(suite: Suite, books: Books, until: float, randomly: random.Random) -> None:
    """Kill or freeze one program after another, each when the last one is back."""
    while time.monotonic() < until:
        await asyncio.sleep(randomly.uniform(*CALM_S))
        name, how = randomly.choice(LUCK)
        books.luck[f"{name} {how.name}"] = books.luck.get(f"{name} {how.name}", 0) + 1
        if how is signal.SIGSTOP:
            suite.pause(name)
            await asyncio.sleep(FROZEN_S)
            suite.resume(name)
        else:
            await suite.until_back(name, suite.kill(name, how), BACK_S)
        books.memory_mib.append(memory_mib(suite))


def memory_mib(suite: Suite) -> float:
    """Return what the services hold, PostgreSQL, NATS and model excepted."""
    total = 0
    for name, processes in suite.processes().items():
        if name in {"gateway", "chat", "task-runner", "scheduler", "observability"}:
            for process in processes:
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
    return total / 2**20


async def quiet(conn: asyncpg.Connection[asyncpg.Record]) -> None:
    """Wait until nothing waits or runs any more and every event is published."""
    deadline = time.monotonic() + QUIET_S
    open_ = f"select count(*) from task_runner.tasks where state not in {ENDED}"
    unsent = "select count(*) from task_runner.outbox where sent_at is null"
    while await conn.fetchval(open_) or await conn.fetchval(unsent):
        if time.monotonic() > deadline:
            return  # the books say what is stuck
        await asyncio.sleep(0.5)
    await asyncio.sleep(5)  # what is posted of the last ones


async def balance(conn: asyncpg.Connection[asyncpg.Record], books: Books, figures: Figures) -> None:
    """Compare what was acknowledged with what there is."""
    rows = await conn.fetch("select id, state, attempt, schedule_id, remediates from task_runner.tasks")
    states = {row["id"]: row["state"] for row in rows}
    figures.add("tasks acknowledged", len(books.tasks), "")
    figures.add("tasks lost", len(books.tasks - states.keys()), "", 0)
    figures.add("tasks stuck", sum(state not in ENDED for state in states.values()), "", 0)
    figures.add("tasks not completed", sum(states.get(each) != "completed" for each in books.tasks), "", 0)
    # What a task does in the world here: its post.
    said = await conn.fetch(
        "select task_id, count(*) as n from chat.channel_messages where task_kind = 'completed' group by task_id"
    )
    posts = {row["task_id"]: row["n"] for row in said}
    done = {each for each, state in states.items() if state == "completed"}
    figures.add("completed tasks without a post", len(done - posts.keys()), "", 0)
    figures.add("posts of tasks doubled", sum(n > 1 for n in posts.values()), "", 0)
    kept = {row[0] for row in await conn.fetch("select id from chat.channel_messages where author_kind = 'user'")}
    figures.add("posts acknowledged", len(books.posts), "")
    figures.add("posts lost", len(books.posts - kept), "", 0)
    runs = await conn.fetch("select schedule_id, planned_at, task_id, outcome from scheduler.schedule_runs")
    started = [row["task_id"] for row in runs if row["outcome"] == "started"]
    figures.add("times of schedules", len(runs), "")
    figures.add("times that made no task", sum(each not in states for each in started), "", 0)
    figures.add("times doubled", len(started) - len(set(started)), "", 0)
    told = await conn.fetch(
        "select aggregate_id, count(*) filter (where subject like '%tasks-started%') as starts,"
        " count(*) filter (where subject like '%tasks-stopped%') as stops from task_runner.outbox group by 1"
    )
    figures.add("attempts begun and not ended, in what is told", sum(r["starts"] != r["stops"] for r in told), "", 0)
    figures.add("attempts", sum(row["attempt"] for row in rows), "")
    for row in await conn.fetch(SIZES):
        figures.add(f"rows: {row['name']}", row["rows"], "")


async def soak(suite: Suite, minutes: float, figures: Figures, seed: int) -> None:
    books, randomly = Books(), random.Random(seed)
    suite.model.set_default(Reply(text="It is as it should be, and was looked at twice.", token_delay_s=0.05))
    async with suite.talk() as talk:
        for number in range(SCHEDULES):
            body = {"name": f"Minute {number}", "prompt": "Look.", "cron": "* * * * *", "skipIfRunning": False}
            books.schedules.add(await insisted(talk, "/api/schedules", body))
        until = time.monotonic() + minutes * 60
        await asyncio.gather(
            give(talk, books, until), post(talk, books, until), bad_luck(suite, books, until, randomly)
        )
        for each in books.schedules:
            await paused(talk, each)
    async with application_database(suite) as conn:
        await quiet(conn)
        await balance(conn, books, figures)
    figures.add("programs killed or frozen", sum(books.luck.values()), "")
    figures.noise |= {"luck": books.luck, "seed": seed}
    if len(books.memory_mib) > 3:
        half = len(books.memory_mib) // 2
        early, late = (max(part) for part in (books.memory_mib[1 : half + 1], books.memory_mib[half:]))
        figures.add("memory of the second half against the first", late / early, "", 1.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    figures = Figures("chaos")
    with tempfile.TemporaryDirectory(dir=figures.folder) as folder, Suite(Path(folder)) as suite:
        try:
            uvloop.run(soak(suite, options.minutes, figures, options.seed))
        except SuiteError as error:
            figures.write()
            raise SystemExit(f"{error}\nseed {options.seed}") from error
    figures.write()
    if missed := [name for name, figure in figures.figures.items() if figure.holds is False]:
        raise SystemExit(f"the books do not balance: {', '.join(missed)}; seed {options.seed}")


if __name__ == "__main__":
    main()
