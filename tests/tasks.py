"""Tasks and schedules of a running suite, as its tests follow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from tests.stored import connected
from tests.suite import POSTGRES, Suite
from tests.talk import Talk

ENDED: Final = ("completed", "failed", "cancelled", "dead-letter")
POLL_S: Final = 0.05
DATABASE: Final = "popagent"


async def give(talk: Talk, prompt: str, **fields: Any) -> str:
    """Create a task and return its id."""
    made = await talk.json("POST", "/api/tasks", {"prompt": prompt, **fields})
    return str(made["id"])


async def task_in(talk: Talk, task_id: str, *states: str, timeout_s: float = 30.0) -> dict[str, Any]:
    """Return the task once it is in one of the states; requests that fail meanwhile are made again."""
    async with asyncio.timeout(timeout_s):
        while True:
            response = await talk.http.get(f"/api/tasks/{task_id}")
            if response.status_code == 200:
                task: dict[str, Any] = response.json()
                if task["state"] in (states or ENDED):
                    return task
            await asyncio.sleep(POLL_S)


def calls_of(task: dict[str, Any], tool: str) -> list[dict[str, Any]]:
    """Return every record of a call of the tool, in the order of the transcript."""
    return [each for record in task["activity"] for each in record["calls"] if each["tool"] == tool]


@asynccontextmanager
async def application_database(suite: Suite) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """Connect to what the services keep, as its owner."""
    password = (suite.home / "credentials" / "postgres-application").read_text().strip()
    async with connected(suite.program(POSTGRES).port, password, DATABASE) as conn:
        yield conn


async def make_due(suite: Suite, schedule_id: str) -> None:
    """Let a schedule's next time have come."""
    async with application_database(suite) as conn:
        await conn.execute(
            "update scheduler.schedules set next_run_at = date_trunc('minute', clock_timestamp()) where id = $1",
            schedule_id,
        )
