"""Rows of hooks and of what they did."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query
from popagent_proto.chat.hooks import HookFields, HookRunView, HookView
from popagent_runs.hooks.rows import RESOURCE, StoredHook

KEPT_RUNS: Final = 10_000
KEPT_DAYS: Final = 30

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


# A session that is gone has no audit any more; what was stored without an answer is not stored twice.
ADD_RUN: Final = Query(
    None,
    """
    insert into hook_runs (
        id, session_id, turn_id, trace_id, event, hook_id, hook_name, subject, decision, reason, status, input, output,
        duration_ms
    )
    select $1, s.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
    from sessions s
    where s.id = $2
    on conflict (id) do nothing
    """,
)

# $3 is the last seq that was seen; $5 bounds the bytes of the page, of which one run comes in any case.
RUNS: Final = Query(
    HookRunView,
    """
    select id, seq, turn_id, trace_id, event, hook_id, hook_name, subject, decision, reason, status, input, output,
        duration_ms, created_at as at
    from (
        select r.*, sum(octet_length(r.input::text) + octet_length(r.output) + 1024) over (order by r.seq) as bytes,
            row_number() over (order by r.seq) as place
        from (
            select *
            from hook_runs
            where session_id = $1 and ($2::text is null or turn_id = $2) and seq > $3
            order by seq
            limit $4
        ) r
    ) page
    where bytes <= $5 or place = 1
    order by seq
    """,
)

MORE_RUNS: Final = Query(
    bool,
    """
    select exists (
        select 1 from hook_runs where session_id = $1 and ($2::text is null or turn_id = $2) and seq > $3
    )
    """,
)

IS_FIRST_TURN: Final = Query(
    bool, "select not exists (select 1 from turns where session_id = $1 and id <> $2) as is_first"
)

DROP_OLD: Final = Query(
    None,
    f"""
    delete from hook_runs
    where seq in (
        select seq from hook_runs where created_at < now() - interval '{KEPT_DAYS} days' order by created_at limit $1
    )
    """,
)

# Only sessions that something was added to can have become too long.
RECENT_SESSIONS: Final = Query(
    str, "select distinct session_id from hook_runs where created_at > now() - interval '1 day'"
)

DROP_SURPLUS: Final = Query(
    None,
    """
    delete from hook_runs
    where session_id = $1 and seq <= (
        select seq from hook_runs where session_id = $1 order by seq desc offset $2 limit 1
    )
    """,
)
