"""The list of traces, and one trace as a tree of spans with the log records written inside it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, TypeVar

from popagent_bus import Handlers
from popagent_db.pool import Connection
from popagent_kit import cursors
from popagent_kit.errors import NotFoundError
from popagent_observability import reading
from popagent_observability.deps import ObservabilityDeps
from popagent_observability.reading import StoredSpan, Weight
from popagent_proto.base import View
from popagent_proto.observability import GetTrace, ListTraces, SpanView, TraceList, TraceSummary, TraceView

MOST_SPANS: Final = 5_000
MOST_LOGS: Final = 500
LONGEST_MESSAGE: Final = 2_000
# Together with the head and the commas below 1 MB, the limit of a reply.
SPANS_BYTES: Final = 780_000
LOGS_BYTES: Final = 200_000
# A span without attributes, about; what is really written is measured afterwards.
BARE_SPAN_BYTES: Final = 330
NEVER_ENDED: Final = "It never ended: its process stopped, or what it told was lost."

# Sorts before every trace in "newest first".
BEGINNING: Final = (datetime(9999, 1, 1, tzinfo=UTC), "")

# By whether only turns are wanted, and the state.
PAGES: Final = {
    (False, None): reading.PAGE_OF_ALL,
    (False, "ok"): reading.PAGE_OF_OK,
    (False, "running"): reading.PAGE_OF_RUNNING,
    (False, "error"): reading.PAGE_OF_ERRORS,
    (True, None): reading.PAGE_OF_TURNS,
    (True, "ok"): reading.PAGE_OF_OK_TURNS,
    (True, "running"): reading.PAGE_OF_RUNNING_TURNS,
    (True, "error"): reading.PAGE_OF_FAILED_TURNS,
}

handlers: Handlers[ObservabilityDeps] = Handlers()
V = TypeVar("V", bound=View)


@handlers.answers(ListTraces)
async def list_traces(deps: ObservabilityDeps, query: ListTraces) -> TraceList:
    """Return a page, newest first."""
    async with deps.pool.acquire() as connection:
        found = await _page(connection, query, deps.settings.lost_after_s)
    items, more = found[: query.limit], len(found) > query.limit
    return TraceList(
        items=items, next_cursor=cursors.encode(items[-1].started_at, items[-1].trace_id) if more else None
    )


async def _page(connection: Connection, query: ListTraces, lost_after_s: float) -> list[TraceSummary]:
    place = BEGINNING if query.cursor is None else cursors.decode(query.cursor)
    after = (lost_after_s, *place, query.limit + 1)
    if query.turn_id is not None:
        return await reading.PAGE_OF_TURN.all(connection, *after, query.turn_id, query.status, query.session_id)
    if query.session_id is not None:
        narrowed = (query.session_id, query.status, query.turns_only)
        return await reading.PAGE_OF_SESSION.all(connection, *after, *narrowed)
    return await PAGES[query.turns_only, query.status].all(connection, *after)


@handlers.answers(GetTrace)
async def get_trace(deps: ObservabilityDeps, query: GetTrace) -> TraceView:
    """Return a trace; a large one loses its largest attributes first, then its last spans, and says so."""
    trace_id = query.trace_id
    async with deps.pool.acquire() as connection:
        summary = await reading.SUMMARY_OF.first(connection, deps.settings.lost_after_s, trace_id)
        if summary is None:
            raise NotFoundError("There is no trace with this id; it may be on its way, or older than what is kept.")
        weight = await reading.WEIGHT.one(connection, trace_id, MOST_SPANS)
        largest = largest_attributes(weight)
        found = await reading.SPANS_OF.all(connection, trace_id, MOST_SPANS, largest)
        logs = await reading.LOGS_OF.all(connection, trace_id, MOST_LOGS + 1, LONGEST_MESSAGE)
    lost = summary.status != "running"
    spans = fitting((_span_view(span, lost=lost) for span in found), SPANS_BYTES)
    shown = fitting(logs[:MOST_LOGS], LOGS_BYTES)
    whole = len(spans) == summary.span_count and len(shown) == len(logs) and not any(span.left_out for span in found)
    return TraceView(**dict(summary), spans=spans, logs=shown, truncated=not whole)


def largest_attributes(weight: Weight) -> int:
    """Return the size up to which the attributes of every span fit into a reply; 0 when none do."""
    room = SPANS_BYTES - weight.spans * BARE_SPAN_BYTES
    for size, total in (
        (32_768, weight.up_to_32768),
        (4_096, weight.up_to_4096),
        (1_024, weight.up_to_1024),
        (256, weight.up_to_256),
    ):
        if total <= room:
            return size
    return 0


def fitting(views: Iterable[V], limit_bytes: int) -> list[V]:
    """Return the first views whose JSON together is at most `limit_bytes` long."""
    kept: list[V] = []
    for view in views:
        limit_bytes -= len(view.encode()) + 1
        if limit_bytes < 0:
            break
        kept.append(view)
    return kept


def _span_view(span: StoredSpan, *, lost: bool) -> SpanView:
    """Return the span; in a trace that is not running any more, what never ended is an error."""
    attributes = span.attributes
    if span.events:
        attributes = {**attributes, "events": span.events}
    if span.links:
        attributes = {**attributes, "links": span.links}
    if span.ended_at is not None:
        status, text = ("error" if span.failed else "ok"), span.status_text
        duration_ms = round((span.ended_at - span.started_at).total_seconds() * 1000, 3)
    else:
        status, text = ("error", NEVER_ENDED) if lost else ("running", "")
        duration_ms = None
    return SpanView.model_validate(
        {
            "span_id": span.span_id,
            "parent_id": span.parent_id,
            "name": span.name,
            "service": span.service,
            "kind": span.kind,
            "started_at": span.started_at,
            "duration_ms": duration_ms,
            "status": status,
            "status_text": text,
            "attributes": attributes,
        }
    )
