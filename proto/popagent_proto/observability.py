"""Traces, logs and health of the observability store."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import ListView, Moment, Query, View
from popagent_proto.common import TurnEnd


class TraceSummary(View):
    """One trace, named by its root span; durations in milliseconds, null while it runs."""

    trace_id: str
    name: str
    service: str
    started_at: Moment
    duration_ms: float | None
    status: Literal["running", "ok", "error"]
    span_count: int
    session_id: Id | None
    turn_id: Id | None
    input_tokens: int
    output_tokens: int
    turn_state: TurnEnd | None = Field(
        default=None, description="How the turn ended, as its span tells; null before that, and of plain requests."
    )


class SpanView(View):
    """One span; `parent_id` null marks the root. Texts were redacted before they were stored."""

    span_id: str
    parent_id: str | None
    name: str
    service: str
    kind: str
    started_at: Moment
    duration_ms: float | None
    status: Literal["running", "ok", "error"]
    status_text: str
    attributes: dict[str, Any]


class LogView(View):
    """One log record."""

    at: Moment
    service: str
    level: str
    logger: str
    message: str
    trace_id: str | None
    span_id: str | None


class TraceView(TraceSummary):
    """A trace with its spans in order of start, at most 5,000, and its log records, at most 500."""

    spans: list[SpanView]
    logs: list[LogView]
    truncated: bool


class TraceList(ListView):
    """Newest first."""

    items: list[TraceSummary]


class ListTraces(Query[TraceList]):
    """At most 200 at a time."""

    subject: ClassVar = "popagent.observability.qry.traces-list.v1"

    session_id: Id | None = None
    turn_id: Id | None = None
    status: Literal["running", "ok", "error"] | None = None
    turns_only: bool = Field(default=False, description="Leave out the traces of plain requests.")
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)


class GetTrace(Query[TraceView]):
    """By trace id, 32 hexadecimal digits."""

    subject: ClassVar = "popagent.observability.qry.traces-get.v1"

    trace_id: str = Field(pattern=r"^[0-9a-f]{32}$")


class StoreHealthView(View):
    """How much the store holds and how far behind it is."""

    ready: bool
    spans: int
    logs: int
    size_bytes: int
    oldest_at: Moment | None
    newest_at: Moment | None
    pending_batches: int = Field(description="Batches on the bus that are not stored yet.")


class GetStoreHealth(Query[StoreHealthView]):
    """Answered from the store itself; a stopped store is a 503."""

    subject: ClassVar = "popagent.observability.qry.store-health.v1"
