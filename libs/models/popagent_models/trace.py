"""The span of a model call. It is never the current one of the code that consumes the answer."""

from __future__ import annotations

from contextvars import copy_context
from typing import Final

from opentelemetry.trace import Span

from popagent_models.usage import UsageRecord
from popagent_telemetry import metrics, span

FIRST_TOKEN: Final = metrics.histogram(
    "popagent_model_first_token_seconds", "From the admitted request to the first part of the answer"
)
CALLS: Final = metrics.counter("popagent_model_calls_total", "Model calls by how they ended", ["outcome"])
TOKENS: Final = metrics.counter("popagent_model_tokens_total", "Tokens read and written", ["direction"])


class CallSpan:
    """A span with gen_ai.* attributes that lives as long as the answer.

    An async generator runs in its consumer's context: a span made current there would adopt the consumer's spans, and
    be detached out of order. So it is opened and closed in a copy of the context.
    """

    def __init__(self, host: str, model: str, record: UsageRecord) -> None:
        self._context = copy_context()
        self._manager = span(
            f"chat {model}",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": model,
                "server.address": host,
                "popagent.model.source": record.source,
            },
            kind="client",
        )
        self.span: Span = self._context.run(self._manager.__enter__)

    def trace_id(self) -> str | None:
        """Return the trace this call belongs to."""
        context = self.span.get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else None

    def answered_by(self, model: str | None) -> None:
        """Note which model the server says it used."""
        if model:
            self.span.set_attribute("gen_ai.response.model", model[:200])

    def end(self, record: UsageRecord, error: BaseException | None) -> None:
        """Write the figures and close the span."""
        self.span.set_attributes(
            {
                "gen_ai.usage.input_tokens": record.input_tokens,
                "gen_ai.usage.output_tokens": record.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": record.cached_tokens,
                "gen_ai.usage.reasoning.output_tokens": record.reasoning_tokens,
                "gen_ai.usage.estimated": record.estimated,
                "popagent.model.queue_ms": record.queue_ms,
                "popagent.model.retries": record.retries,
            }
        )
        if record.ttft_ms is not None:
            self.span.set_attribute("gen_ai.response.time_to_first_chunk_ms", record.ttft_ms)
            FIRST_TOKEN.observe(record.ttft_ms / 1000)
        if record.finish_reason is not None:
            self.span.set_attribute("gen_ai.response.finish_reasons", [record.finish_reason])
        CALLS.labels(record.error_class or "ok").inc()
        TOKENS.labels("in").inc(record.input_tokens)
        TOKENS.labels("out").inc(record.output_tokens)
        kind = type(error) if error is not None else None
        trace = error.__traceback__ if error is not None else None
        self._context.run(self._manager.__exit__, kind, error, trace)
