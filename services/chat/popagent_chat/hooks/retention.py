"""The audit of hooks is kept for thirty days, and ten thousand runs a session."""

from __future__ import annotations

from typing import Final

from popagent_chat.hooks import store
from popagent_db.pool import Pool

PRUNE_EVERY_S: Final = 600.0
BATCH: Final = 5_000


class Retention:
    """The chore of one process."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def prune(self) -> None:
        """Drop what is too old or too much, a batch a statement."""
        while True:
            async with self._pool.acquire() as conn:
                dropped = await store.DROP_OLD.run(conn, BATCH)
            if dropped < BATCH:
                break
        async with self._pool.acquire() as conn:
            for session_id in await store.RECENT_SESSIONS.all(conn):
                await store.DROP_SURPLUS.run(conn, session_id, store.KEPT_RUNS)
