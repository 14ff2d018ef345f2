"""Messages of a thread: a tree; a branch is the chain of parents that ends at one message."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel

from popagent_chat.threads.words import folded, said
from popagent_db.query import Query
from popagent_telemetry import redact_value, secrets_registered

# All threads of the one person belong to this resource (CH-8).
RESOURCE: Final = "popagent-user"
# Of so many messages it is remembered that nothing in them is to be redacted: to look takes longer than to send them.
MOST_CLEAN: Final = 20_000

_clean: dict[tuple[str, int, datetime, int], None] = {}


class StoredMessage(BaseModel):
    """One message; `parts` and `metadata` as on the wire."""

    id: str
    seq: int
    parent_id: str | None
    role: Literal["user", "assistant"]
    parts: list[dict[str, Any]]
    metadata: dict[str, Any]
    token_count: int
    created_at: datetime

    def ui(self) -> dict[str, Any]:
        """Return the AI SDK UI message, without credentials that are known by now and were not when it was stored."""
        message: dict[str, Any] = {"id": self.id, "role": self.role, "parts": self.parts}
        if self.metadata:
            message["metadata"] = self.metadata
        key = (self.id, self.seq, self.created_at, secrets_registered())
        if key in _clean:
            return message
        shown: dict[str, Any] = redact_value(message) | {"id": self.id}
        if shown == message:
            if len(_clean) >= MOST_CLEAN:
                _clean.clear()
            _clean[key] = None
        return shown


CREATE: Final = Query(None, "insert into threads (id, kind, resource) values ($1, $2, $3) on conflict (id) do nothing")

SET_HEAD: Final = Query(None, "update threads set head_id = $2 where id = $1")

HEAD: Final = Query(str, "select head_id from threads where id = $1")


def insert_from(thread: str, first: int) -> str:
    """Return the relations `message` and `words` of a statement that stores a message, with the words searched for.

    `thread` is a relation of that statement: the thread's id, and the message's seq. The message's seven columns, see
    `columns_of`, begin with `first`; without parts there is no message.
    """
    message_id, parent_id, role, parts, metadata, tokens, words = (f"${first + place}" for place in range(7))
    return f"""
    message as (
        insert into messages (thread_id, id, seq, parent_id, role, parts, metadata, token_count, sealed_at)
        select id, {message_id}, seq, {parent_id}, {role}, {parts}, {metadata}, {tokens}, clock_timestamp()
        from {thread}
        where {parts}::json is not null
    ), words as (
        insert into message_texts (thread_id, seq, folded) select id, seq, {words} from {thread} where {words} <> ''
    )"""


FIND: Final = Query(
    StoredMessage,
    """
    select id, seq, parent_id, role, parts, metadata, token_count, created_at
    from messages
    where thread_id = $1 and id = $2
    """,
)

# The first of the ids $2 that is stored.
FIRST_KNOWN: Final = Query(
    str,
    """
    select m.id
    from unnest($2::text[]) with ordinality as named (id, place)
    join messages m on m.thread_id = $1 and m.id = named.id
    order by named.place
    limit 1
    """,
)

# A parent is older than its child, so the chain ends. $3 bounds the messages and $4 their bytes; one comes in any case.
BRANCH: Final = Query(
    StoredMessage,
    """
    with recursive branch as (
        select m.id, m.parent_id, 1 as depth, m.size_bytes::bigint as size_bytes
        from messages m
        where m.thread_id = $1 and m.id = $2
        union all
        select m.id, m.parent_id, b.depth + 1, b.size_bytes + m.size_bytes
        from branch b
        join messages m on m.thread_id = $1 and m.id = b.parent_id
        where b.depth < $3 and b.size_bytes + m.size_bytes <= $4
    )
    select m.id, m.seq, m.parent_id, m.role, m.parts, m.metadata, m.token_count, m.created_at
    from branch b
    join messages m on m.thread_id = $1 and m.id = b.id
    order by m.seq
    """,
)

# The whole branch that ends at $2.
WALK: Final = """
    with recursive branch as (
        select m.id, m.parent_id, m.seq, m.size_bytes from messages m where m.thread_id = $1 and m.id = $2
        union all
        select m.id, m.parent_id, m.seq, m.size_bytes
        from branch b
        join messages m on m.thread_id = $1 and m.id = b.parent_id
    )"""

BRANCH_IDS: Final = Query(str, f"{WALK} select id from branch order by seq")

DELETE: Final = Query(
    None, "with words as (delete from message_texts where thread_id = $1) delete from threads where id = $1"
)

# A child is newer than its parent, so that the newest may go first.
DELETE_NEWEST: Final = Query(
    None,
    """
    with newest as materialized (
        select seq from messages where thread_id = $1 order by seq desc limit $2
    ), words as (
        delete from message_texts where thread_id = $1 and seq in (select seq from newest)
    )
    delete from messages where thread_id = $1 and seq in (select seq from newest)
    """,
)


def columns_of(message: dict[str, Any], *, parent_id: str | None, token_count: int) -> tuple[object, ...]:
    """Return the columns that a UI message is stored with, below `parent_id`."""
    parts, metadata = message["parts"], message.get("metadata") or {}
    return message["id"], parent_id, message["role"], parts, metadata, token_count, folded(said(parts or []))
