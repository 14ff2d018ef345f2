"""Spans of this process, and the trace context that travels in message headers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation import get_current_span, set_span_in_context

from popagent_kit.errors import AppError
from popagent_kit.text import excerpt
from popagent_telemetry.redaction import LONGEST_SECRET, redact

Kind = Literal["internal", "server", "client", "producer", "consumer"]
AttributeValue = str | bool | int | float | Sequence[str] | Sequence[int] | Sequence[float]

TRACEPARENT: Final = "traceparent"
KINDS: Final[dict[str, SpanKind]] = {kind.name.lower(): kind for kind in SpanKind}
# Characters; a longer text belongs into a row, not into a span.
LONGEST_ATTRIBUTE: Final = 8_192
# Kept above that until it was redacted, since half a secret is not recognised.
LIMITS: Final = SpanLimits(
    max_span_attributes=64,
    max_events=64,
    max_links=16,
    max_event_attributes=16,
    max_link_attributes=8,
    max_span_attribute_length=LONGEST_ATTRIBUTE + LONGEST_SECRET,
    max_attribute_length=LONGEST_ATTRIBUTE + LONGEST_SECRET,
)
_HEX: Final = frozenset("0123456789abcdef")


def make_provider(processor: SpanProcessor | None = None) -> TracerProvider:
    """Return a provider that records everything: a caller's sampling flag must not hide our own work."""
    provider = TracerProvider(
        sampler=ALWAYS_ON, resource=Resource.get_empty(), span_limits=LIMITS, shutdown_on_exit=False
    )
    if processor is not None:
        provider.add_span_processor(processor)
    return provider


_tracer = make_provider().get_tracer("popagent")


def use_provider(provider: TracerProvider) -> None:
    """Take every later span of this process from `provider`."""
    global _tracer  # noqa: PLW0603 (one tracer a process, as one log)
    _tracer = provider.get_tracer("popagent")


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, AttributeValue] | None = None,
    *,
    kind: Kind = "internal",
    parent: Context | None = None,
    links: Sequence[SpanContext] = (),
    **more: AttributeValue,
) -> Iterator[Span]:
    """Run the block as a span; `parent` comes from `extract`, else it is the current one.

    An exception is recorded and passed on; an `AppError` below 500 is an answer, so that it leaves the status unset.
    """
    current = _tracer.start_span(
        name,
        context=parent,
        kind=KINDS[kind],
        attributes={**(attributes or {}), **more},
        links=[Link(link) for link in links],
    )
    token = otel_context.attach(set_span_in_context(current, parent))
    try:
        yield current
    except BaseException as error:
        note_error(current, error)
        raise
    finally:
        current.end()
        otel_context.detach(token)


def note_error(current: Span, error: BaseException) -> None:
    """Write `error` into the span, as its status when it is a failure of ours."""
    if isinstance(error, asyncio.CancelledError):
        current.set_attribute("cancelled", True)
        return
    code = error.code if isinstance(error, AppError) else type(error).__name__
    current.set_attribute("error.type", code)
    if isinstance(error, AppError) and error.http_status < 500:
        current.set_attribute("error.message", excerpt(redact(error.message), 512))
        return
    current.record_exception(error)
    current.set_status(Status(StatusCode.ERROR, excerpt(redact(str(error)), 512)))


def current_span() -> Span:
    """Return the span the caller runs in; one that records nothing outside of any."""
    return get_current_span()


def current_trace_id() -> str | None:
    """Return the 32 hex digits of the current trace, None outside of any."""
    context = get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None


def inject(headers: MutableMapping[str, str]) -> None:
    """Add `traceparent` for the current span; nothing outside of any."""
    context = get_current_span().get_span_context()
    if context.is_valid:
        headers[TRACEPARENT] = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 0xFF:02x}"


def extract(headers: Mapping[str, str] | None) -> Context | None:
    """Return the caller's context for `span(parent=…)`; None when the header is missing or malformed."""
    found = remote_context(headers)
    return None if found is None else set_span_in_context(NonRecordingSpan(found), Context())


def remote_context(headers: Mapping[str, str] | None) -> SpanContext | None:
    """Return the span named by `traceparent`, for a link; a redelivered message links and does not re-parent."""
    parts = headers.get(TRACEPARENT, "").split("-") if headers else []
    if len(parts) < 4 or parts[0] == "ff" or [len(part) for part in parts[:4]] != [2, 32, 16, 2]:
        return None
    if not all(_HEX.issuperset(part) for part in parts[:4]) or (parts[0] == "00" and len(parts) != 4):
        return None
    found = SpanContext(int(parts[1], 16), int(parts[2], 16), is_remote=True, trace_flags=TraceFlags(int(parts[3], 16)))
    return found if found.is_valid else None


def ids_of(current: Span | None = None) -> tuple[str | None, str | None]:
    """Return (trace id, span id) in hex of `current`, else of the span the caller runs in."""
    context: SpanContext = (current or get_current_span()).get_span_context()
    if not context.is_valid:
        return None, None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"
