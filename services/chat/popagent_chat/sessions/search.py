"""Search: which sessions hold the words, in their title or in a message, and where they are within one session."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel

from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import store as threads
from popagent_chat.threads.words import SEARCHED_CHARACTERS, Wanted
from popagent_db.pool import Connection
from popagent_db.query import Query
from popagent_proto.chat.sessions import MessageHit, SessionItem
from popagent_telemetry import redact

# Archived or not, workspace, updated_at and id of the last row seen, how many: the parameters of the list.
Which = tuple[bool, str | None, datetime | None, str | None, int]


class FoundSession(SessionRow):
    """A session that a search found; without a message, by its title."""

    message_id: str | None
    role: Literal["user", "assistant"] | None
    at: datetime | None
    said: str | None


class FoundMessage(BaseModel):
    """A message that a search found, with its text."""

    message_id: str
    role: Literal["user", "assistant"]
    at: datetime
    said: str

    def hit(self, wanted: Wanted) -> MessageHit:
        """Return what the wire shows."""
        return MessageHit(
            message_id=self.message_id, role=self.role, at=self.at, excerpt=wanted.excerpt(redact(self.said))
        )


# Only for rows that are answered: a message with what its tools returned may be large.
_SAID: Final = f"""(
        select coalesce(left(string_agg(p.part->>'text', E'\\n\\n' order by p.place), {SEARCHED_CHARACTERS}), '')
        from json_array_elements(m.parts) with ordinality as p (part, place)
        where p.part->>'type' = 'text'
    )"""  # noqa: S608 (a constant)


def _of_sessions(folded: str) -> Query[FoundSession]:
    """Return the search; `folded` is how the words of messages that the index has are read."""
    return Query(
        FoundSession,
        f"""
    with hits as (
        select thread_id, max(seq) as seq
        from message_texts
        where indexed and {folded} like $6 and {folded} like all($7::text[])
        group by thread_id
        union all
        select thread_id, max(seq)
        from message_texts
        where not indexed and folded like $6 and folded like all($7::text[])
        group by thread_id
    ),
    newest as materialized (
        select thread_id, max(seq) as seq from hits group by thread_id
    ),
    page as (
        select s.id, s.title, s.title_locked, s.workspace_id, s.archived_at, s.revision, s.version, s.running_turn_id,
            s.last_turn_state, s.created_at, s.updated_at,
            case when s.folded_title like $6 and s.folded_title like all($7::text[]) then null else n.seq end as seq
        from sessions s
        left join newest n on n.thread_id = s.id
        where (n.seq is not null or (s.folded_title like $6 and s.folded_title like all($7::text[])))
            and (s.archived_at is not null) = $1 and s.leaving_at is null
            and ($2::text is null or s.workspace_id = $2)
            and ($3::timestamptz is null or (s.updated_at, s.id) < ($3, $4::text))
        order by s.updated_at desc, s.id desc
        limit $5
    )
    select s.id, s.title, s.title_locked, s.workspace_id, s.archived_at, s.revision, s.version, s.running_turn_id,
        s.last_turn_state, s.created_at, s.updated_at, m.id as message_id, m.role, m.created_at as at,
        case when m.id is not null then {_SAID} end as said
    from page s
    left join messages m on m.thread_id = s.id and m.seq = s.seq
    order by s.updated_at desc, s.id desc
    """,  # noqa: S608 (both forms stand below)
    )


BY_INDEX: Final = _of_sessions("folded")
# Of words too short for the index it would be read as a whole, which takes longer than reading the words themselves.
BY_READING: Final = _of_sessions("(folded || '')")

# On the branch that ends at $2 and after seq $3; the walk ends at the oldest hit.
IN_SESSION: Final = Query(
    FoundMessage,
    f"""
    with recursive hits as materialized (
        select seq
        from message_texts
        where thread_id = $1 and seq > $3 and folded like $4 and folded like all($5::text[])
    ),
    branch as (
        select m.id, m.parent_id, m.seq from messages m where m.thread_id = $1 and m.id = $2
        union all
        select m.id, m.parent_id, m.seq
        from branch b
        join messages m on m.thread_id = $1 and m.id = b.parent_id
        where b.seq > (select min(seq) from hits)
    ),
    page as (
        select h.seq from hits h join branch b on b.seq = h.seq order by h.seq limit $6
    )
    select m.id as message_id, m.role, m.created_at as at, {_SAID} as said
    from page p
    join messages m on m.thread_id = $1 and m.seq = p.seq
    order by m.seq
    """,  # noqa: S608 (a constant)
)


async def sessions(conn: Connection, query: str, which: Which) -> list[SessionItem]:
    """Return the sessions whose title, or else one of whose messages, holds every word; newest activity first."""
    wanted = Wanted.of(query)
    statement = BY_INDEX if wanted.indexed else BY_READING
    items = []
    for row in await statement.all(conn, *which, wanted.first, wanted.others):
        items.append(_item(row, wanted))
        # A long text takes a while to look through, and turns come first.
        await asyncio.sleep(0)
    return items


async def messages(conn: Connection, session_id: str, query: str, after_seq: int, limit: int) -> list[MessageHit]:
    """Return the messages of the shown branch that hold every word, oldest first."""
    wanted = Wanted.of(query)
    head = await threads.HEAD.first(conn, session_id)
    found = await IN_SESSION.all(conn, session_id, head, after_seq, wanted.first, wanted.others, limit)
    hits = []
    for row in found:
        hits.append(row.hit(wanted))
        await asyncio.sleep(0)
    return hits


def _item(row: FoundSession, wanted: Wanted) -> SessionItem:
    if row.message_id is None or row.role is None or row.at is None:
        return row.item()
    found = FoundMessage(message_id=row.message_id, role=row.role, at=row.at, said=row.said or "")
    return row.item(found.hit(wanted))
