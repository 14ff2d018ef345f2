"""From a batch as it came to rows that can be stored: each record is checked, bounded and redacted by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, TypeVar, get_args

from popagent_bus.consuming import PoisonError
from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_kit.ids import is_client_id
from popagent_observability.bounds import plain, plain_attributes, plain_value
from popagent_proto.common import TurnEnd
from popagent_telemetry import metrics

TRACE_ID: Final = re.compile(r"\A(?!0{32})[0-9a-f]{32}\Z")
SPAN_ID: Final = re.compile(r"\A(?!0{16})[0-9a-f]{16}\Z")
KINDS: Final = frozenset({"internal", "server", "client", "producer", "consumer"})
LEVELS: Final = frozenset({"debug", "info", "warning", "error", "critical"})
LONGEST_NAME: Final = 200
LONGEST_STATUS: Final = 2_000
# Ours hold 256; a batch is parsed in one go, during which nothing else is answered.
MOST_RECORDS: Final = 5_000
MOST_EVENTS: Final = 64
MOST_LINKS: Final = 16
LARGEST_EVENTS_BYTES: Final = 16_384
# A clock may be wrong by hours; one that is wrong by more would make partitions nobody wants.
AHEAD: Final = timedelta(days=1)

SESSION_KEYS: Final = ("popagent.session.id", "gen_ai.conversation.id")
TURN_KEYS: Final = ("popagent.turn.id",)
TURN_STATE: Final = "popagent.turn.state"
TURN_ENDS: Final = frozenset(get_args(TurnEnd))
# A person who stops a turn gets what they want.
FAILED_TURNS: Final = frozenset({"failed", "interrupted"})
# An agent's own span repeats the sum of its model calls.
SUMMING_OPERATIONS: Final = frozenset({"invoke_agent", "invoke_workflow", "create_agent", "execute_tool"})
INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
MOST_TOKENS: Final = 1_000_000_000

REFUSED: Final = metrics.counter("popagent_store_refused_total", "Records that were not stored", ("kind", "reason"))

Row = TypeVar("Row")


class RefusedError(ValueError):
    """A record that cannot be stored; the argument is a word for the metric."""


@dataclass(frozen=True, slots=True)
class Window:
    """The moments that are stored: not older than the retention, not in the future."""

    earliest: datetime
    latest: datetime

    @classmethod
    def around(cls, moment: datetime, retention_days: int) -> Window:
        """Return the window at `moment`; it begins with a whole day, as retention drops whole days."""
        day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return cls(day - timedelta(days=retention_days), moment + AHEAD)

    def moment(self, nanoseconds: Any) -> datetime:
        """Return the time of `nanoseconds` since 1970; refuses what lies outside."""
        if type(nanoseconds) is not int or not 0 <= nanoseconds < 2**63:
            raise RefusedError("time")
        return self.check(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1_000))

    def check(self, moment: datetime) -> datetime:
        """Return `moment` itself; refuses what lies outside."""
        if moment < self.earliest:
            raise RefusedError("too_old")
        if moment > self.latest:
            raise RefusedError("future")
        return moment


@dataclass(frozen=True, slots=True)
class SpanRow:
    """One span as it is stored; the fields after `size` go into the summary of its trace only."""

    day: date
    trace_id: str
    span_id: str
    parent_id: str | None
    service: str
    instance: str
    name: str
    kind: str
    started_at: datetime
    ended_at: datetime | None
    failed: bool
    status_text: str
    attributes: str
    events: str
    links: str
    size: int
    session_id: str | None
    turn_id: str | None
    turn_state: str | None
    input_tokens: int
    output_tokens: int

    @property
    def key(self) -> tuple[str, str, date]:
        """Return what makes it the same span."""
        return self.trace_id, self.span_id, self.day


@dataclass(frozen=True, slots=True)
class LogRow:
    """One log record or event as it is stored."""

    day: date
    id: str
    at: datetime
    service: str
    level: str
    logger: str
    message: str
    trace_id: str | None
    span_id: str | None
    attributes: str

    @property
    def key(self) -> tuple[str, date]:
        """Return what makes it the same record."""
        return self.id, self.day


@dataclass(slots=True)
class Batch:
    """What one message brings; rows are sorted by key, and no key comes twice."""

    sent_at: datetime
    spans: list[SpanRow] = field(default_factory=list)
    logs: list[LogRow] = field(default_factory=list)
    dropped: int = 0


def parse_batch(service: str, data: bytes, window: Window, moment: datetime) -> Batch:
    """Return the rows of a telemetry batch that `service` sent; a record that cannot be stored is counted and left out.

    Raises:
        PoisonError: The batch as a whole is not one.
    """
    try:
        body = json.loads(data)
    except MalformedJsonError as error:
        raise PoisonError(error.message) from error
    if not isinstance(body, dict) or not all(isinstance(body.get(name), list) for name in ("spans", "logs")):
        raise PoisonError("a batch is an object with the lists spans and logs")
    if len(body["spans"]) + len(body["logs"]) > MOST_RECORDS:
        raise PoisonError(f"a batch has at most {MOST_RECORDS} records")
    instance = plain(_text(body.get("instance")), LONGEST_NAME)
    spans = _each(body["spans"], "span", lambda record: span_row(service, instance, record, window))
    logs = _each(body["logs"], "log", lambda record: log_row(service, instance, record, window))
    dropped = body.get("dropped")
    return Batch(
        _sent_at(body.get("sentAt"), window, moment),
        sorted(_once(spans).values(), key=lambda row: row.key),
        sorted({row.key: row for row in logs}.values(), key=lambda row: row.key),
        dropped if type(dropped) is int and 0 < dropped < 2**31 else 0,
    )


def span_row(service: str, instance: str, record: Any, window: Window) -> SpanRow:
    """Return the row of one span; raises RefusedError."""
    if not isinstance(record, dict):
        raise RefusedError("shape")
    trace_id, span_id = _id(record.get("traceId"), TRACE_ID), _id(record.get("spanId"), SPAN_ID)
    if trace_id is None or span_id is None:
        raise RefusedError("id")
    started_at = window.moment(record.get("startedAt"))
    ended = record.get("endedAt")
    ended_at = None if ended is None else max(started_at, window.moment(ended))
    attributes, encoded = plain_attributes(record.get("attributes"))
    events = _list(record.get("events"), MOST_EVENTS)
    links = _list(record.get("links"), MOST_LINKS)
    counts = attributes.get("gen_ai.operation.name") not in SUMMING_OPERATIONS
    return SpanRow(
        day=started_at.date(),
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(record.get("parentId"), SPAN_ID),
        service=service,
        instance=instance,
        name=plain(_text(record.get("name")), LONGEST_NAME) or "unnamed",
        kind=kind if (kind := _text(record.get("kind"))) in KINDS else "internal",
        started_at=started_at,
        ended_at=ended_at,
        failed=_failed(record.get("status"), attributes),
        status_text=plain(_text(record.get("statusMessage")), LONGEST_STATUS),
        attributes=encoded.decode(),
        events=events.decode(),
        links=links.decode(),
        size=len(encoded) + len(events) + len(links),
        session_id=_named(attributes, SESSION_KEYS),
        turn_id=_named(attributes, TURN_KEYS),
        turn_state=_turn_state(attributes),
        input_tokens=_tokens(attributes, INPUT_TOKENS) if counts else 0,
        output_tokens=_tokens(attributes, OUTPUT_TOKENS) if counts else 0,
    )


def log_row(service: str, instance: str, record: Any, window: Window) -> LogRow:
    """Return the row of one log record; raises RefusedError."""
    if not isinstance(record, dict):
        raise RefusedError("shape")
    at = window.moment(record.get("at"))
    _, attributes = plain_attributes(record.get("attributes"))
    level = _text(record.get("level")).lower()
    logger = plain(_text(record.get("logger")), LONGEST_NAME)
    message = plain(_text(record.get("message")), 8_192)
    span_id = _id(record.get("spanId"), SPAN_ID)
    said = json.dumps([service, instance, record["at"], level, logger, message, span_id, attributes.decode()])
    return LogRow(
        day=at.date(),
        id=digest(said),
        at=at,
        service=service,
        level=level if level in LEVELS else "info",
        logger=logger,
        message=message,
        trace_id=_id(record.get("traceId"), TRACE_ID),
        span_id=span_id,
        attributes=attributes.decode(),
    )


def digest(said: bytes) -> str:
    """Return 32 hex digits that are the same for the same bytes."""
    return blake2b(said, digest_size=16).hexdigest()


def refuse(kind: str, error: RefusedError) -> None:
    """Count a record that is not stored."""
    REFUSED.labels(kind, str(error)).inc()


def _each(records: Iterable[Any], kind: str, row: Callable[[Any], Row]) -> list[Row]:
    rows = []
    for record in records:
        try:
            rows.append(row(record))
        except RefusedError as error:
            refuse(kind, error)
    return rows


def _once(rows: Iterable[SpanRow]) -> dict[tuple[str, str, date], SpanRow]:
    """Keep one row of each span: the first that ended, else the first."""
    found: dict[tuple[str, str, date], SpanRow] = {}
    for row in rows:
        known = found.setdefault(row.key, row)
        if known.ended_at is None and row.ended_at is not None:
            found[row.key] = row
    return found


def _sent_at(value: Any, window: Window, moment: datetime) -> datetime:
    """Return when the batch was sent; a batch without a credible time was sent now."""
    try:
        return min(window.moment(value), moment)
    except RefusedError:
        return moment


def _failed(status: Any, attributes: dict[str, Any]) -> bool:
    """Tell whether the work failed: said so, answered 5xx, or a turn or an agent's run that did not come to its end."""
    answered = attributes.get("http.response.status_code")
    return (
        status == "error"
        or _turn_state(attributes) in FAILED_TURNS
        or (isinstance(answered, int) and 500 <= answered < 600)
        or (attributes.get("gen_ai.operation.name") == "invoke_agent" and "error.type" in attributes)
    )


def _turn_state(attributes: dict[str, Any]) -> str | None:
    state = attributes.get(TURN_STATE)
    return state if isinstance(state, str) and state in TURN_ENDS else None


def _list(value: Any, most: int) -> bytes:
    if not isinstance(value, list) or not value:
        return b"[]"
    encoded = json.dumps([plain_value(item) for item in value[:most] if isinstance(item, dict)])
    if len(encoded) <= LARGEST_EVENTS_BYTES:
        return encoded
    return json.dumps([{"name": "left out", "bytes": len(encoded)}])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _id(value: Any, pattern: re.Pattern[str]) -> str | None:
    return value if isinstance(value, str) and pattern.match(value) else None


def _named(attributes: dict[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and is_client_id(value):
            return value
    return None


def _tokens(attributes: dict[str, Any], keys: Iterable[str]) -> int:
    for key in keys:
        value = attributes.get(key)
        if type(value) is int and 0 <= value <= MOST_TOKENS:
            return value
    return 0
