"""Statements that write: many rows each, and harmless when they are repeated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

from popagent_db.query import Query


@dataclass(frozen=True, slots=True)
class Changed:
    """A span that is new, or (`announced`) that was running before and has now ended."""

    trace_id: str
    span_id: str
    day: date
    announced: bool


PUT_SPANS: Final = Query(
    Changed,
    """
    insert into spans (
        day, trace_id, span_id, parent_id, service, instance, name, kind, started_at, ended_at, failed, status_text,
        attributes, events, links, size
    )
    select day, trace_id, span_id, parent_id, service, instance, name, kind, started_at, ended_at, failed, status_text,
        attributes::jsonb, events::jsonb, links::jsonb, size
    from unnest(
        $1::date[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::timestamptz[], $10::timestamptz[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::text[],
        $16::integer[]
    ) as given (
        day, trace_id, span_id, parent_id, service, instance, name, kind, started_at, ended_at, failed, status_text,
        attributes, events, links, size
    )
    on conflict (trace_id, span_id, day) do update set
        parent_id = excluded.parent_id, name = excluded.name, kind = excluded.kind, ended_at = excluded.ended_at,
        failed = excluded.failed, status_text = excluded.status_text, attributes = excluded.attributes,
        events = excluded.events, links = excluded.links, size = excluded.size, announced = true
    where spans.ended_at is null and excluded.ended_at is not null
    returning trace_id, span_id, day, announced
    """,
)

PUT_LOGS: Final = Query(
    date,
    """
    insert into logs (day, id, at, service, level, logger, message, trace_id, span_id, attributes)
    select day, id, at, service, level, logger, message, trace_id, span_id, attributes::jsonb
    from unnest(
        $1::date[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[]
    ) as given (day, id, at, service, level, logger, message, trace_id, span_id, attributes)
    on conflict (id, day) do nothing
    returning day
    """,
)

# Counts arrive as differences, so that a trace of any length costs the same; a span that ends gives open_count -1.
# A root replaces a provisional one, and itself when it ends: its name may have become more exact.
ADD_TO_TRACES: Final = Query(
    None,
    """
    insert into traces as known (
        trace_id, name, service, root_rank, root_started_at, started_at, ended_at, seen_at,
        span_count, open_count, failed_count, session_id, turn_id, turn_state, input_tokens, output_tokens
    )
    select * from unnest(
        $1::text[], $2::text[], $3::text[], $4::smallint[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
        $8::timestamptz[], $9::integer[], $10::integer[], $11::integer[], $12::text[], $13::text[], $14::text[],
        $15::bigint[], $16::bigint[]
    )
    on conflict (trace_id) do update set
        name = case
            when (excluded.root_rank, excluded.root_started_at) <= (known.root_rank, known.root_started_at)
            then excluded.name else known.name end,
        service = case
            when (excluded.root_rank, excluded.root_started_at) <= (known.root_rank, known.root_started_at)
            then excluded.service else known.service end,
        root_started_at = case
            when (excluded.root_rank, excluded.root_started_at) <= (known.root_rank, known.root_started_at)
            then excluded.root_started_at else known.root_started_at end,
        root_rank = least(known.root_rank, excluded.root_rank),
        started_at = least(known.started_at, excluded.started_at),
        ended_at = greatest(known.ended_at, excluded.ended_at),
        seen_at = greatest(known.seen_at, excluded.seen_at),
        span_count = known.span_count + excluded.span_count,
        open_count = known.open_count + excluded.open_count,
        failed_count = known.failed_count + excluded.failed_count,
        session_id = coalesce(known.session_id, excluded.session_id),
        turn_id = coalesce(known.turn_id, excluded.turn_id),
        turn_state = coalesce(excluded.turn_state, known.turn_state),
        input_tokens = known.input_tokens + excluded.input_tokens,
        output_tokens = known.output_tokens + excluded.output_tokens
    """,
)

# Last in the transaction: the day's row is shared by all writers.
COUNT_DAY: Final = Query(
    None,
    "update days set spans = days.spans + $2::integer, logs = days.logs + $3::integer where day = $1::date",
)

KNOWN_DAYS: Final = Query(date, "select day from days order by day")
MAKE_DAY: Final = Query(bool, "select make_day($1)")
DROP_DAY: Final = Query(bool, "select drop_day($1)")
DROP_TRACES: Final = Query(
    None,
    """
    delete from traces
    where trace_id in (
        select trace_id from traces where started_at < $1 and seen_at < $1 order by started_at limit $2
    )
    """,
)
SIZE_BYTES: Final = Query(
    int,
    """
    select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
    from pg_class
    where relnamespace = (select oid from pg_namespace where nspname = current_schema()) and relkind = 'r'
    """,
)
