"""Where a branch forks and how it goes on: siblings, the way down, the messages after one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel

from popagent_chat.threads.store import WALK, StoredMessage
from popagent_db.pool import Connection
from popagent_db.query import Query
from popagent_proto.chat.sessions import BranchPage

# A page of messages stays small, however often its answers were written again.
NAMED_SIBLINGS: Final = 2_000
FEWEST_SIBLINGS: Final = 9


class Child(BaseModel):
    """A message and what it hangs below."""

    id: str
    parent_id: str | None


class Newer(StoredMessage):
    """A message that follows another on a branch; `is_last` marks the end of the branch."""

    is_last: bool


# $3: also the messages that hang below nothing.
CHILDREN: Final = Query(
    Child,
    """
    select id, parent_id
    from messages
    where thread_id = $1 and (parent_id = any($2::text[]) or ($3::boolean and parent_id is null))
    order by seq
    """,
)

# A child is newer than its parent, so the newest message below one is the end of a branch.
NEWEST_BELOW: Final = Query(
    str,
    """
    with recursive below as (
        select m.id, m.seq from messages m where m.thread_id = $1 and m.id = $2
        union all
        select m.id, m.seq
        from below b
        join messages m on m.thread_id = $1 and m.parent_id = b.id
    )
    select id from below order by seq desc limit 1
    """,
)

# From the head $2 back to the message with seq $3, which the first one hangs below when it is on this branch.
# $4 bounds the messages and $5 their bytes; one comes in any case when $6 says so.
NEWER: Final = Query(
    Newer,
    """
    with recursive newer as (
        select m.id, m.parent_id, m.seq, m.size_bytes from messages m
        where m.thread_id = $1 and m.id = $2 and m.seq > $3
        union all
        select m.id, m.parent_id, m.seq, m.size_bytes
        from newer n
        join messages m on m.thread_id = $1 and m.id = n.parent_id
        where m.seq > $3
    ),
    counted as (
        select id, row_number() over (order by seq) as place, sum(size_bytes) over (order by seq) as size_bytes
        from newer
    )
    select m.id, m.seq, m.parent_id, m.role, m.parts, m.metadata, m.token_count, m.created_at, m.id = $2 as is_last
    from counted c
    join messages m on m.thread_id = $1 and m.id = c.id
    where c.place <= $4 and (c.size_bytes <= $5 or (c.place = 1 and $6::boolean))
    order by m.seq
    """,
)

# The message of seq $3 is on the branch that ends at $2 when the walk back from there meets it.
IS_ON_BRANCH: Final = Query(
    bool,
    """
    with recursive newer as (
        select m.id, m.parent_id, m.seq from messages m where m.thread_id = $1 and m.id = $2 and m.seq >= $3
        union all
        select m.id, m.parent_id, m.seq
        from newer n
        join messages m on m.thread_id = $1 and m.id = n.parent_id
        where m.seq >= $3
    )
    select exists (select 1 from newer where seq = $3)
    """,
)


# The branch that ends at $2 in runs of at most $3 messages and $4 bytes; a larger message is the first of its run.
OUTLINE: Final = Query(
    BranchPage,
    f"""{WALK},
    placed as (
        select id, seq, row_number() over (order by seq) - 1 as place, sum(size_bytes) over (order by seq) as size_bytes
        from branch
    )
    select (array_agg(id order by seq desc))[1] as last_id, count(*) as count
    from placed
    group by place / $3::int, div(size_bytes, $4::int)
    order by min(seq)
    """,  # noqa: S608 (a constant)
)


async def siblings_of(conn: Connection, thread_id: str, messages: Sequence[StoredMessage]) -> dict[str, list[str]]:
    """Return the ids at the place of each message that is not alone there, oldest first, the nearest of very many."""
    parents = {message.parent_id for message in messages}
    families: dict[str | None, list[str]] = defaultdict(list)
    for child in await CHILDREN.all(conn, thread_id, [p for p in parents if p is not None], None in parents):
        families[child.parent_id].append(child.id)
    found = {message.id: families[message.parent_id] for message in messages if len(families[message.parent_id]) > 1}
    most = max(FEWEST_SIBLINGS, NAMED_SIBLINGS // max(1, len(found)))
    return {message_id: _nearest(family, family.index(message_id), most) for message_id, family in found.items()}


def _nearest(family: list[str], place: int, most: int) -> list[str]:
    begin = max(0, min(place - most // 2, len(family) - most))
    return family[begin : begin + most]
