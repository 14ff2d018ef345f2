from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_telemetry import tracing


class Kept(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS


@pytest.fixture
def kept() -> Iterator[Kept]:
    kept = Kept()
    tracing.use_provider(tracing.make_provider(SimpleSpanProcessor(kept)))
    yield kept
    tracing.use_provider(tracing.make_provider())


@tool("look", access="read")
async def look(run: RunContext, at: str) -> str:
    """Look."""
    return at


async def test_a_run_is_one_tree_of_steps_and_tools_named_by_its_context(kit: Any, kept: Kept) -> None:
    turn = kit.turn(kit.calls(("look", {"at": "secret thing"}), ("nothing", {})), kit.says("ok"), tools=[look])

    await turn.run()

    spans = {span.context.span_id: span for span in kept.spans}
    tree = sorted((spans[span.parent.span_id].name if span.parent else "", span.name) for span in kept.spans)
    assert tree == [
        ("", "agent.run"),
        ("agent.run", "agent.step"),
        ("agent.run", "agent.step"),
        ("agent.step", "execute_tool look"),
        ("agent.step", "execute_tool nothing"),
    ]
    run = next(span for span in kept.spans if span.name == "agent.run")
    assert run.attributes is not None
    assert run.attributes["gen_ai.request.model"] == "scripted"
    assert run.attributes["gen_ai.conversation.id"] == "session-1"
    assert run.attributes["popagent.turn.id"] == "turn-1"
    assert run.attributes["gen_ai.usage.input_tokens"] == 30
    assert "secret thing" not in str([dict(span.attributes or {}) for span in kept.spans])


async def test_a_stopped_run_is_no_failure_in_the_trace(kit: Any, kept: Kept) -> None:
    turn = kit.turn(kit.says("Hello"))
    turn.on_chunk = lambda _: turn.stop.stop()

    await turn.run()

    assert all(span.status.is_ok or span.status.is_unset for span in kept.spans)
