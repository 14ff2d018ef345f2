from __future__ import annotations

import logging
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from popagent_models.client import ModelClient
from popagent_models.endpoint import endpoint
from popagent_models.request import Origin
from popagent_models.usage import UsageRecord
from popagent_telemetry import current_trace_id, span
from popagent_telemetry.tracing import make_provider, use_provider
from popagent_testing.asking import ask, request
from popagent_testing.model_server import ModelServer, Reply


class KeptSpans(SpanProcessor):
    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


@pytest.fixture
def spans() -> Any:
    kept = KeptSpans()
    use_provider(make_provider(kept))
    yield kept
    use_provider(make_provider())


async def test_a_complete_call_is_recorded_with_its_origin(
    client: ModelClient, server: ModelServer, usage: Any, spans: KeptSpans
) -> None:
    server.script(Reply(status=503), Reply(text="one two"))
    origin = Origin(turn_id="turn", agent_id="orchestrator", requested_model="wanted", source="agent")

    with span("turn"):
        trace_id = current_trace_id()
        await ask(client, request(origin=origin))

    record = usage.records[0]
    assert (record.turn_id, record.agent_id, record.source) == ("turn", "orchestrator", "agent")
    assert (record.requested_model, record.route_model) == ("wanted", "scripted-model")
    assert (record.input_tokens, record.output_tokens, record.estimated) == (2, 2, False)
    assert (record.finish_reason, record.error_class, record.retries) == ("stop", None, 1)
    assert record.ttft_ms is not None
    assert record.trace_id == trace_id
    call = next(ended for ended in spans.ended if ended.name == "chat scripted-model")
    assert call.attributes is not None
    assert call.attributes["gen_ai.usage.output_tokens"] == 2
    assert call.attributes["gen_ai.response.model"] == "scripted-model"
    assert call.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert call.parent is not None


async def test_a_failed_call_is_recorded_too(client: ModelClient, server: ModelServer, usage: Any) -> None:
    server.script(Reply(status=401), Reply(text="one two three", fault="cut", after=2))

    await ask(client)
    await ask(client)

    refused, cut = usage.records
    assert (refused.error_class, refused.output_tokens, refused.ttft_ms) == ("configuration", 0, None)
    assert (cut.error_class, cut.estimated, cut.output_tokens) == ("provider", True, 2)


async def test_a_stopped_call_is_recorded_as_stopped(client: ModelClient, server: ModelServer, usage: Any) -> None:
    server.script(Reply(text="one two three", hold=True, after=1))

    async with aclosing(client.stream(request())) as stream:
        await anext(stream)

    assert (usage.records[0].error_class, usage.records[0].finish_reason) == ("stopped", None)


async def test_the_call_is_not_the_current_span_of_its_consumer(
    client: ModelClient, server: ModelServer, spans: KeptSpans
) -> None:
    server.script(Reply(text="one two"))

    with span("turn"):
        async with aclosing(client.stream(request())) as stream:
            async for _ in stream:
                with span("consumer"):
                    pass

    turn = next(ended for ended in spans.ended if ended.name == "turn")
    parents = {ended.parent.span_id for ended in spans.ended if ended.name == "consumer" and ended.parent}
    assert parents == {turn.context.span_id}


async def test_a_lost_record_costs_the_turn_nothing(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def record(self, record: UsageRecord) -> None:
            raise OSError("disk full")

    client = ModelClient(endpoint(server.url), usage=Broken())

    with caplog.at_level(logging.ERROR):
        heard = await ask(client)

    assert heard.finish == "stop"
    assert "a usage record was lost" in caplog.text
    await client.close()
