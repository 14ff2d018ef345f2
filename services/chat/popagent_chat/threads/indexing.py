"""Lets what was said into the search index, behind the backs of the turns that said it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from pydantic import BaseModel

from popagent_chat.threads.words import folded, said
from popagent_db.pool import Pool
from popagent_db.query import Query

EVERY_S: Final = 5.0
BATCH: Final = 50
# Between two batches, so that turns come first; and so many at a time, because a stop waits for the chore.
PAUSE_S: Final = 0.05
MOST_BATCHES: Final = 20


class Unfolded(BaseModel):
    """A message stored before there was a search."""

    thread_id: str
    seq: int
    parts: list[dict[str, Any]]


class Untitled(BaseModel):
    """A session stored before there was a search."""

    id: str
    title: str


ADD_MISSING: Final = Query(
    None,
    """
    insert into message_texts (thread_id, seq)
    select m.thread_id, m.seq
    from messages m
    join threads on threads.id = m.thread_id and threads.kind = 'session'
    where not exists (select 1 from message_texts t where t.thread_id = m.thread_id and t.seq = m.seq)
    on conflict (thread_id, seq) do nothing
    """,
)

UNFOLDED: Final = Query(
    Unfolded,
    """
    select t.thread_id, t.seq, m.parts
    from message_texts t
    join messages m on m.thread_id = t.thread_id and m.seq = t.seq
    where not t.indexed and t.folded is null
    order by t.thread_id, t.seq
    limit $1
    """,
)

FOLD: Final = Query(None, "update message_texts set folded = $3 where thread_id = $1 and seq = $2 and folded is null")

UNTITLED: Final = Query(Untitled, "select id, title from sessions where folded_title is null limit $1")

FOLD_TITLE: Final = Query(
    None, "update sessions set folded_title = $3 where id = $1 and title = $2 and folded_title is null"
)

# Replicas share the work: what one has taken the others pass over.
LET_IN: Final = Query(
    None,
    """
    update message_texts t
    set indexed = true
    from (
        select thread_id, seq
        from message_texts
        where not indexed and folded is not null
        order by thread_id, seq
        limit $1
        for update skip locked
    ) due
    where t.thread_id = due.thread_id and t.seq = due.seq
    """,
)


class SearchIndex:
    """The chore of one process."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._missing_added = False
        self._old_folded = False

    async def keep_up(self) -> None:
        """Index what is not yet, a few rows at a time; what is left, the next run does.

        What older versions stored is looked for once a process: the last one that starts has no older one beside it.
        """
        if not self._missing_added:
            async with self._pool.acquire() as conn:
                await ADD_MISSING.run(conn)
            self._missing_added = True
        if not self._old_folded:
            self._old_folded = await self._batches(self._fold_titles) and await self._batches(self._fold)
        await self._batches(self._let_in)

    async def _batches(self, work: Callable[[], Awaitable[int]]) -> bool:
        """Tell whether nothing is left."""
        for _ in range(MOST_BATCHES):
            if await work() < BATCH:
                return True
            await asyncio.sleep(PAUSE_S)
        return False

    async def _fold_titles(self) -> int:
        async with self._pool.acquire() as conn:
            found = await UNTITLED.all(conn, BATCH)
            await FOLD_TITLE.run_many(conn, [(row.id, row.title, folded(row.title)) for row in found])
        return len(found)

    async def _fold(self) -> int:
        async with self._pool.acquire() as conn:
            found = await UNFOLDED.all(conn, BATCH)
            rows = []
            for row in found:
                rows.append((row.thread_id, row.seq, folded(said(row.parts))))
                # A long text takes a while to fold, and turns come first.
                await asyncio.sleep(0)
            await FOLD.run_many(conn, rows)
        return len(found)

    async def _let_in(self) -> int:
        async with self._pool.acquire() as conn:
            return await LET_IN.run(conn, BATCH)
