"""The table of work, as tests fill it and look at it."""

from __future__ import annotations

import asyncio

from popagent_db.pool import Pool
from popagent_rows.leased import Holder
from popagent_testing.leased_work import ENQUEUE, WORK, WorkRow


async def enqueue(pool: Pool, *ids: str) -> None:
    async with pool.acquire() as conn:
        await ENQUEUE.run_many(conn, [(row_id, "") for row_id in ids])


async def until_state(pool: Pool, row_id: str, state: str, timeout_s: float = 10) -> None:
    async with asyncio.timeout(timeout_s):
        while await pool.fetchval("select state from work where id = $1", row_id) != state:
            await asyncio.sleep(0.02)


async def claim(pool: Pool, holder: Holder, limit: int = 10) -> list[WorkRow]:
    async with pool.acquire() as conn:
        return await WORK.claim(conn, holder, limit)
