"""Rows of hooks and of what they did."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query
from popagent_proto.chat.hooks import HookFields, HookView
from popagent_runs.hooks.audited import audit_queries
from popagent_runs.hooks.rows import RESOURCE, StoredHook

_VIEW: Final = f"""
    select h.id, h.name, h.event, h.matcher, h.kind, h.url, h.argv, s.name is not null as has_secret, h.timeout_ms,
        h.on_failure, h.order_index, h.enabled, h.revision, h.created_at, h.updated_at
    from hooks h
    left join secrets s on s.resource = '{RESOURCE}' and s.name = h.id"""

LIST: Final = Query(HookView, f"{_VIEW} order by h.order_index, h.id limit $1")

GET: Final = Query(HookView, f"{_VIEW} where h.id = $1")

LOCK: Final = Query(HookView, f"{_VIEW} where h.id = $1 for update of h")

_STORED: Final = f"""
    select h.id, h.name, h.event, h.matcher, h.kind, h.url, h.argv, h.timeout_ms, h.on_failure,
        encode(s.sealed, 'hex') as sealed
    from hooks h
    left join secrets s on s.resource = '{RESOURCE}' and s.name = h.id"""

# In the order in which they run. Part of the snapshot of every run.
ENABLED: Final = Query(StoredHook, f"{_STORED} where h.enabled order by h.order_index, h.id")

ENABLED_FOR: Final = Query(StoredHook, f"{_STORED} where h.enabled and h.event = $1 order by h.order_index, h.id")

STORED: Final = Query(StoredHook, f"{_STORED} where h.id = $1")

# Held while hooks are counted and one is added.
LOCK_TABLE: Final = Query(None, "lock table hooks in share row exclusive mode")

COUNT: Final = Query(int, "select count(*) from hooks")

INSERT: Final = Query(
    None,
    """
    insert into hooks (
        id, name, event, matcher, kind, url, argv, timeout_ms, on_failure, order_index, enabled, revision
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)
    """,
)

UPDATE: Final = Query(
    None,
    """
    update hooks
    set name = $2, event = $3, matcher = $4, kind = $5, url = $6, argv = $7, timeout_ms = $8, on_failure = $9,
        order_index = $10, enabled = $11, revision = revision + 1, updated_at = clock_timestamp()
    where id = $1
    """,
)


def columns_of(fields: HookFields | HookView) -> tuple[object, ...]:
    """Return what INSERT and UPDATE store, behind the id."""
    return (
        fields.name,
        fields.event,
        fields.matcher,
        fields.kind,
        fields.url,
        fields.argv,
        fields.timeout_ms,
        fields.on_failure,
        fields.order_index,
        fields.enabled,
    )


DELETE: Final = Query(int, "delete from hooks where id = $1 returning revision")


AUDIT: Final = audit_queries("session_id", "sessions")

IS_FIRST_TURN: Final = Query(
    bool, "select not exists (select 1 from turns where session_id = $1 and id <> $2) as is_first"
)
