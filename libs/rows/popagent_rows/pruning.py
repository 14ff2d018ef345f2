"""Deleting what is old, a batch at a time, so that no statement lasts long or locks many rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from popagent_db.pool import Pool
from popagent_db.query import Query

BATCH: Final = 5_000


async def prune(pool: Pool, statement: Query[None], kept: timedelta, batch: int = BATCH) -> int:
    """Run a deletion of at most $2 rows older than the interval $1 until it finds no more; returns how many went."""
    total = 0
    while True:
        async with pool.acquire() as connection:
            gone = await statement.run(connection, kept, batch)
        total += gone
        if gone < batch:
            return total
