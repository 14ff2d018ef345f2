"""Drives PgQueuer; its arguments are the DSN of an administrator and that of the database to make."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import asyncpg
from measured import Found, Work, rates, worked
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job


async def main(admin: str, dsn: str) -> Found:
    connection = await asyncpg.connect(admin)
    await connection.execute(f"create database {dsn.rsplit('/', 1)[-1].partition('?')[0]}")
    await connection.close()
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(asyncpg.create_pool(dsn, min_size=2, max_size=8))
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()

        async def enqueue(at: float) -> object:
            return await queries.enqueue("work", str(at).encode(), 0)

        found = await rates(enqueue)
        await pool.execute("truncate pgqueuer cascade")
        work, queue = Work(), PgQueuer(driver)

        @queue.entrypoint("work")
        async def note(job: Job) -> None:
            work.note(float(job.payload or b""))

        return found | await worked(enqueue, work, lambda: queue.run(batch_size=10))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
