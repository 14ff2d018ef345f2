"""What is heard: batches of spans and logs, and every event of the suite as a log record of its trace."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from popagent_bus import Handlers, RawMessage
from popagent_bus.consuming import PoisonError
from popagent_kit import json
from popagent_kit.clock import now
from popagent_kit.errors import MalformedJsonError
from popagent_observability.bounds import plain, plain_attributes
from popagent_observability.deps import ObservabilityDeps
from popagent_observability.records import LogRow, RefusedError, Window, digest, parse_batch, refuse
from popagent_proto import matrix
from popagent_telemetry import metrics, remote_context

EVENT_LOGGER: Final = "event"
LONGEST_EVENT_ID: Final = 128

LOST: Final = metrics.counter(
    "popagent_store_lost_upstream_total", "Records that services dropped before they could send them", ("service",)
)

handlers: Handlers[ObservabilityDeps] = Handlers()


@handlers.takes("observability-telemetry")
async def take_telemetry(deps: ObservabilityDeps, message: RawMessage) -> None:
    """Store a batch; the sender is read from the subject, which the bus lets nobody else use."""
    service, moment = sender(message), now()
    window = Window.around(moment, deps.settings.retention_days)
    batch = parse_batch(service, message.data, window, moment)
    if batch.dropped:
        LOST.labels(service).inc(batch.dropped)
    await deps.storing.put(batch)


@handlers.takes("observability-events")
async def take_event(deps: ObservabilityDeps, message: RawMessage) -> None:
    """Store an event as a log record; told twice, it is one record."""
    moment = now()
    try:
        row = event_row(message, Window.around(moment, deps.settings.retention_days))
    except RefusedError as error:
        refuse("event", error)
        return
    await deps.storing.put_record(row)


def sender(message: RawMessage) -> str:
    """Return the service whose subject this is.

    Raises:
        PoisonError: None of ours.
    """
    service = message.subject.split(".")[1]
    if service not in matrix.BY_NAME:
        raise PoisonError(f"{service[:80]} is not a service")
    return service


def event_row(message: RawMessage, window: Window) -> LogRow:
    """Return the record of an event; its trace is the one its headers name.

    Raises:
        PoisonError: It is not an event.
        RefusedError: It is older than what is kept.
    """
    try:
        event = json.loads(message.data)
    except MalformedJsonError as error:
        raise PoisonError(error.message) from error
    event_id = event.get("eventId") if isinstance(event, dict) else None
    if not isinstance(event_id, str) or not 0 < len(event_id) <= LONGEST_EVENT_ID:
        raise PoisonError("an event is an object with an eventId")
    at = window.check(_moment(event.get("at")))
    context = remote_context(message.headers)
    _, attributes = plain_attributes(event)
    return LogRow(
        day=at.date(),
        id=digest(json.dumps([message.subject, event_id])),
        at=at,
        service=sender(message),
        level="info",
        logger=EVENT_LOGGER,
        message=plain(".".join(message.subject.split(".")[1:]), 400),
        trace_id=f"{context.trace_id:032x}" if context else None,
        span_id=f"{context.span_id:016x}" if context else None,
        attributes=attributes.decode(),
    )


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise PoisonError("an event says when it happened, as RFC 3339") from error
    if moment.tzinfo is None:
        raise PoisonError("an event's time names its zone")
    return moment.astimezone(UTC)
