"""Lets what was said into the search index, behind the backs of the turns that said it."""

from __future__ import annotations

import asyncio
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


async def keep_up(pool: Pool) -> None:
    """Fold what was stored before, and index what is not yet, a few rows at a time; what is left, the next run does."""
    for work in (_fold_titles, _fold, _let_in):
        for _ in range(MOST_BATCHES):
            if await work(pool) < BATCH:
                break
            await asyncio.sleep(PAUSE_S)


async def _fold_titles(pool: Pool) -> int:
    async with pool.acquire() as conn:
        found = await UNTITLED.all(conn, BATCH)
        await FOLD_TITLE.run_many(conn, [(row.id, row.title, folded(row.title)) for row in found])
    return len(found)


async def _fold(pool: Pool) -> int:
    async with pool.acquire() as conn:
        found = await UNFOLDED.all(conn, BATCH)
        await FOLD.run_many(conn, [(row.thread_id, row.seq, folded(said(row.parts))) for row in found])
    return len(found)


async def _let_in(pool: Pool) -> int:
    async with pool.acquire() as conn:
        return await LET_IN.run(conn, BATCH)
