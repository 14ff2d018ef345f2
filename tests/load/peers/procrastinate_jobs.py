"""Drives Procrastinate; its arguments are the DSN of an administrator and that of the database to make."""

from __future__ import annotations

import asyncio
import json
import sys

import psycopg
from measured import Found, Work, rates, worked
from procrastinate import App, PsycopgConnector


async def main(admin: str, dsn: str) -> Found:
    async with await psycopg.AsyncConnection.connect(admin, autocommit=True) as connection:
        await connection.execute(f"create database {dsn.rsplit('/', 1)[-1].partition('?')[0]}")  # type: ignore[arg-type]
    app = App(connector=PsycopgConnector(conninfo=dsn, min_size=2, max_size=8))
    work = Work()

    @app.task(name="work")
    async def note(at: float) -> None:
        work.note(at)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()

        async def enqueue(at: float) -> object:
            return await note.defer_async(at=at)

        found = await rates(enqueue)
        await app.connector.execute_query_async("truncate procrastinate_jobs cascade")
        return found | await worked(
            enqueue, work, lambda: app.run_worker_async(concurrency=10, wait=True, install_signal_handlers=False)
        )


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
