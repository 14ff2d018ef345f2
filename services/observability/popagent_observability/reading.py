"""Statements that read; a trace that is open and was silent for too long has lost a process: its status is error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from popagent_db.query import Query
from popagent_proto.observability import LogView, TraceSummary

# $1: seconds of silence after which what is open counts as lost.
STATUS: Final = """
    case when state <> 'open' then state
        when seen_at < clock_timestamp() - make_interval(secs => $1) then 'error' else 'running' end
"""
SUMMARY: Final = f"""
    trace_id, name, service, started_at, {STATUS} as status, span_count, session_id, turn_id, turn_state,
    case when state <> 'open' then round(extract(epoch from ended_at - started_at) * 1000, 3)::float8 end
        as duration_ms,
    input_tokens, output_tokens
"""


def page(where: str) -> Query[TraceSummary]:
    """Return the statement of one page after ($2, $3), newest first, $4 rows; `where` narrows it by an index."""
    return Query(
        TraceSummary,
        f"""
        select {SUMMARY} from traces
        where (started_at, trace_id) < ($2, $3) and {where}
        order by started_at desc, trace_id desc
        limit $4
        """,  # noqa: S608 (constants of this module)
    )


def page_of_errors(narrow: str) -> Query[TraceSummary]:
    """Return the same for errors: two scans in index order, so that a store with few of them is not read through."""
    return Query(
        TraceSummary,
        f"""
        select {SUMMARY} from (
            (
                select * from traces
                where (started_at, trace_id) < ($2, $3) and state = 'error' and {narrow}
                order by started_at desc, trace_id desc limit $4
            )
            union all
            (
                select * from traces
                where (started_at, trace_id) < ($2, $3) and state = 'open'
                    and seen_at < clock_timestamp() - make_interval(secs => $1) and {narrow}
                order by started_at desc, trace_id desc limit $4
            )
        ) as found
        order by started_at desc, trace_id desc
        limit $4
        """,  # noqa: S608 (constants of this module)
    )


OK: Final = "state = 'ok'"
RUNNING: Final = "state = 'open' and seen_at >= clock_timestamp() - make_interval(secs => $1)"
OF_TURNS: Final = "turn_id is not null"

PAGE_OF_ALL: Final = page("true")
PAGE_OF_OK: Final = page(OK)
PAGE_OF_RUNNING: Final = page(RUNNING)
PAGE_OF_ERRORS: Final = page_of_errors("true")
PAGE_OF_TURNS: Final = page(OF_TURNS)
PAGE_OF_OK_TURNS: Final = page(f"{OK} and {OF_TURNS}")
PAGE_OF_RUNNING_TURNS: Final = page(f"{RUNNING} and {OF_TURNS}")
PAGE_OF_FAILED_TURNS: Final = page_of_errors(OF_TURNS)
# One session or turn has few traces; the other conditions are checked on those.
PAGE_OF_SESSION: Final = page(
    f"session_id = $5 and ($6::text is null or {STATUS} = $6) and (not $7::boolean or {OF_TURNS})"
)
PAGE_OF_TURN: Final = page(
    f"turn_id = $5 and ($6::text is null or {STATUS} = $6) and ($7::text is null or session_id = $7)"
)


SUMMARY_OF: Final = Query(TraceSummary, f"select {SUMMARY} from traces where trace_id = $2")  # noqa: S608


@dataclass(frozen=True, slots=True)
class Weight:
    """What the first spans of a trace would weigh if attributes were given up to a size; bytes of JSON."""

    spans: int
    up_to_32768: int
    up_to_4096: int
    up_to_1024: int
    up_to_256: int


WEIGHT: Final = Query(
    Weight,
    """
    select count(*) as spans,
        coalesce(sum(size) filter (where size <= 256), 0) as up_to_256,
        coalesce(sum(size) filter (where size <= 1024), 0) as up_to_1024,
        coalesce(sum(size) filter (where size <= 4096), 0) as up_to_4096,
        coalesce(sum(size), 0) as up_to_32768
    from (select size from spans where trace_id = $1 order by started_at, span_id limit $2) as first
    """,
)


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """A span as it was stored; `left_out` when its attributes are larger than was asked for."""

    span_id: str
    parent_id: str | None
    name: str
    service: str
    kind: str
    started_at: datetime
    ended_at: datetime | None
    failed: bool
    status_text: str
    attributes: dict[str, Any]
    events: list[Any]
    links: list[Any]
    left_out: bool


SPANS_OF: Final = Query(
    StoredSpan,
    """
    select span_id, parent_id, name, service, kind, started_at, ended_at, failed, status_text,
        case when size <= $3 then attributes else '{}' end as attributes,
        case when size <= $3 then events else '[]' end as events,
        case when size <= $3 then links else '[]' end as links,
        size > $3 as left_out
    from spans
    where trace_id = $1
    order by started_at, span_id
    limit $2
    """,
)
LOGS_OF: Final = Query(
    LogView,
    """
    select at, service, level, logger, left(message, $3) as message, trace_id, span_id
    from logs
    where trace_id = $1
    order by at, id
    limit $2
    """,
)


@dataclass(frozen=True, slots=True)
class Contents:
    """How much the store holds, and of which time."""

    spans: int
    logs: int
    oldest_at: datetime | None
    newest_at: datetime | None


CONTENTS: Final = Query(
    Contents,
    """
    select coalesce(sum(spans), 0)::bigint as spans, coalesce(sum(logs), 0)::bigint as logs,
        (select started_at from traces order by started_at, trace_id limit 1) as oldest_at,
        (select started_at from traces order by started_at desc, trace_id desc limit 1) as newest_at
    from days
    """,
)
