"""Spans and logs on their way out: bounded, redacted, in JSON batches; it never blocks and drops the oldest first.

A batch is `{"service", "instance", "sentAt", "dropped", "spans": [...], "logs": [...]}`. A span that still runs when a
batch leaves is sent once with `endedAt: null` and again when it ended: the store upserts by (traceId, spanId).
Times are nanoseconds since 1970, ids lower-case hex.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import time_ns
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

from popagent_kit import json, tasks
from popagent_kit.log import fields_of
from popagent_kit.text import excerpt
from popagent_telemetry import metrics
from popagent_telemetry.redaction import LONGEST_SECRET, redact, redact_value
from popagent_telemetry.tracing import LONGEST_ATTRIBUTE, ids_of

Export = Callable[[bytes], Awaitable[None]]

FLUSH_S: Final = 0.5  # with the store's own half second: visible within 2 s
EXPORT_TIMEOUT_S: Final = 2.0
QUEUED_SPANS: Final = 8_192
QUEUED_LOGS: Final = 4_096
QUEUED_BATCHES: Final = 64
BATCH_RECORDS: Final = 256
BATCH_BYTES: Final = 512 * 1024
# Encoded without a pause, in about a millisecond.
RECORDS_AT_ONCE: Final = 8

DROPPED: Final = metrics.counter(
    "popagent_telemetry_dropped_total", "Spans, logs and batches dropped because nothing took them", ("kind",)
)
EXPORTED: Final = metrics.counter("popagent_telemetry_exported_total", "Spans and logs handed on", ("kind",))
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log record as it is kept until the next batch."""

    at_ns: int
    level: str
    logger: str
    message: str
    fields: Mapping[str, object]
    trace_id: str | None
    span_id: str | None


@dataclass
class Outgoing:
    """What waits for the next batch; filled from any thread, emptied by the loop."""

    running: dict[int, Span] = field(default_factory=dict)
    ended: deque[ReadableSpan] = field(default_factory=deque)
    logs: deque[LogLine] = field(default_factory=deque)
    wake: Callable[[], None] = lambda: None
    dropped: int = 0

    def put_span(self, item: ReadableSpan) -> None:
        """Queue an ended span."""
        if len(self.ended) >= QUEUED_SPANS:
            self.ended.popleft()
            self.count_drop("span")
        self.ended.append(item)
        self.wake()

    def put_log(self, item: LogLine) -> None:
        """Queue a log record."""
        if len(self.logs) >= QUEUED_LOGS:
            self.logs.popleft()
            self.count_drop("log")
        self.logs.append(item)
        self.wake()

    def put_back(self, kind: str, item: ReadableSpan | LogLine) -> None:
        """Queue first what was taken last and not handed on."""
        waiting: deque[Any] = self.ended if kind == "span" else self.logs
        waiting.appendleft(item)

    def count_drop(self, kind: str, amount: int = 1) -> None:
        """Count what was lost; the next batch says how much."""
        self.dropped += amount
        DROPPED.labels(kind).inc(amount)


class QueueingProcessor(SpanProcessor):
    """Put started and ended spans into the queue."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember the span until a batch announces it or it ends."""
        running = self.outgoing.running
        if len(running) >= QUEUED_SPANS:
            running.pop(next(iter(running)), None)
        running[span.get_span_context().span_id] = span
        self.outgoing.wake()

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the whole span."""
        if span.context is not None:
            self.outgoing.running.pop(span.context.span_id, None)
        self.outgoing.put_span(span)


class QueueingHandler(logging.Handler):
    """Put log records into the queue with the trace they were written in: INFO and up of ours, WARNING and up else."""

    def __init__(self, outgoing: Outgoing) -> None:
        super().__init__(logging.INFO)
        self.outgoing = outgoing

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record."""
        if record.levelno < logging.WARNING and not record.name.startswith("popagent"):
            return
        trace_id, span_id = ids_of()
        fields: dict[str, object] = fields_of(record)
        if record.exc_info:
            fields["exception"] = logging.Formatter().formatException(record.exc_info)
        at_ns = int(record.created * 1_000_000_000)
        line = LogLine(at_ns, record.levelname.lower(), record.name, record.getMessage(), fields, trace_id, span_id)
        self.outgoing.put_log(line)


def span_record(span: ReadableSpan) -> dict[str, Any]:
    """Return the JSON-ready, redacted form of a span."""
    context = span.get_span_context()
    return {
        "traceId": f"{context.trace_id:032x}" if context else "",
        "spanId": f"{context.span_id:016x}" if context else "",
        "parentId": f"{span.parent.span_id:016x}" if span.parent else None,
        "name": _cut(span.name, 200),
        "kind": span.kind.name.lower(),
        "startedAt": span.start_time,
        "endedAt": span.end_time,
        "status": span.status.status_code.name.lower(),
        "statusMessage": redact(span.status.description)
        if span.status.status_code is StatusCode.ERROR and span.status.description
        else None,
        "attributes": _attributes(span.attributes),
        "events": [
            {
                "name": redact(event.name),
                "at": event.timestamp,
                "attributes": _attributes(event.attributes),
            }
            for event in span.events
        ],
        "links": [
            {"traceId": f"{link.context.trace_id:032x}", "spanId": f"{link.context.span_id:016x}"}
            for link in span.links
        ],
    }


def _attributes(given: Mapping[str, object] | None) -> dict[str, Any]:
    begun = {
        key: value[: LONGEST_ATTRIBUTE + LONGEST_SECRET] if isinstance(value, str) else value
        for key, value in (given or {}).items()
    }
    return {
        key: excerpt(value, LONGEST_ATTRIBUTE) if isinstance(value, str) else value
        for key, value in redact_value(begun).items()
    }


def _cut(text: str, limit: int) -> str:
    """Return the redacted beginning of `text`; redacted before it is cut, since half a secret is not recognised."""
    return excerpt(redact(text[: limit + LONGEST_SECRET]), limit)


def log_record(line: LogLine) -> dict[str, Any]:
    """Return the JSON-ready, redacted form of a log record."""
    return {
        "at": line.at_ns,
        "level": line.level,
        "logger": line.logger,
        "message": _cut(line.message, LONGEST_ATTRIBUTE),
        "attributes": _attributes({key: str(value) for key, value in line.fields.items()}),
        "traceId": line.trace_id,
        "spanId": line.span_id,
    }


class Exporter:
    """Turns what is queued into batches and hands them to `export`, at most once in `FLUSH_S`; idle when nothing is."""

    def __init__(self, service: str, instance: str, outgoing: Outgoing) -> None:
        self.service = service
        self.instance = instance
        self.outgoing = outgoing
        self.batches: deque[bytes] = deque()
        self._export: Export | None = None
        self._task: asyncio.Task[None] | None = None
        self._something = asyncio.Event()
        self._failing = False

    def start(self, export: Export) -> None:
        """Begin to hand batches to `export`; call it inside the loop that will run it."""
        loop = asyncio.get_running_loop()
        self._export = export

        def wake() -> None:
            if not self._something.is_set() and not loop.is_closed():
                loop.call_soon_threadsafe(self._something.set)

        self.outgoing.wake = wake
        wake()
        self._task = tasks.lasting(self._run, "telemetry-export")

    async def stop(self) -> None:
        """Hand on what is left, within `EXPORT_TIMEOUT_S`, and end."""
        self.outgoing.wake = lambda: None
        if self._task is not None:
            await tasks.end(self._task)
            self._task = None
            await self.flush()

    async def flush(self) -> None:
        """Hand on everything queued now; stops at the first batch that is not taken and keeps it."""
        await self._encode()
        while self.batches and self._export is not None:
            try:
                async with asyncio.timeout(EXPORT_TIMEOUT_S):
                    await self._export(self.batches[0])
            except Exception as error:  # noqa: BLE001 (telemetry must never end the work it describes)
                if not self._failing:
                    log.warning("telemetry is not taken at the moment", extra={"reason": repr(error)})
                self._failing = True
                return
            self._failing = False
            self.batches.popleft()

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(FLUSH_S)
            self._something.clear()
            await self.flush()
            if self.batches:
                self._something.set()

    async def _encode(self) -> None:
        """Move everything queued into `batches`, a few records at a time: other work of the loop goes on between."""
        taken = deque(self._taken())
        spans: list[bytes] = []
        logs: list[bytes] = []
        size = 0
        unfit: Exception | None = None
        try:
            while taken:
                kind, item = taken.popleft()
                try:
                    record = json.dumps(span_record(item) if isinstance(item, ReadableSpan) else log_record(item))
                except Exception as error:  # noqa: BLE001 (an odd value: one record, not all that follow)
                    self.outgoing.count_drop(kind)
                    unfit = error
                    continue
                if size + len(record) > BATCH_BYTES or len(spans) + len(logs) >= BATCH_RECORDS:
                    self._add_batch(spans, logs)
                    spans, logs, size = [], [], 0
                (spans if kind == "span" else logs).append(record)
                size += len(record)
                EXPORTED.labels(kind).inc()
                if len(taken) % RECORDS_AT_ONCE == 0:
                    await asyncio.sleep(0)
        finally:
            # Cancelled in between, nothing is lost: the rest waits for the last flush.
            for kind, item in reversed(taken):
                self.outgoing.put_back(kind, item)
            if spans or logs:
                self._add_batch(spans, logs)
        if unfit is not None:
            log.warning("telemetry that cannot be encoded was dropped", extra={"reason": repr(unfit)})

    def _taken(self) -> list[tuple[str, ReadableSpan | LogLine]]:
        outgoing = self.outgoing
        taken: list[tuple[str, ReadableSpan | LogLine]] = []
        for span_id, span in list(outgoing.running.items()):
            if outgoing.running.pop(span_id, None) is not None:  # announced once; its end comes by itself
                taken.append(("span", span))
        while outgoing.ended:
            taken.append(("span", outgoing.ended.popleft()))
        while outgoing.logs:
            taken.append(("log", outgoing.logs.popleft()))
        return taken

    def _add_batch(self, spans: list[bytes], logs: list[bytes]) -> None:
        if len(self.batches) >= QUEUED_BATCHES:
            self.batches.popleft()
            self.outgoing.count_drop("batch")
        head = json.dumps(
            {"service": self.service, "instance": self.instance, "sentAt": time_ns(), "dropped": self.outgoing.dropped}
        )
        self.outgoing.dropped = 0
        self.batches.append(head[:-1] + b',"spans":[' + b",".join(spans) + b'],"logs":[' + b",".join(logs) + b"]}")
