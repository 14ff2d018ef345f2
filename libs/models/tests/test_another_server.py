"""The same faults, played by a server that is not ours: llmock."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from llmock.pytest_plugin import LLMock

from popagent_models.client import ModelClient, Timeouts
from popagent_models.endpoint import endpoint
from popagent_models.errors import (
    ContextOverflowError,
    ModelProviderError,
    ModelRateLimitedError,
    ModelTimeoutError,
)
from popagent_testing.asking import ask, request

TOOL = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


@pytest.fixture
async def other(llmock: LLMock) -> AsyncIterator[ModelClient]:
    made = ModelClient(endpoint(llmock.base_url()), timeouts=Timeouts(header_s=5, idle_s=1))
    yield made
    await made.close()


async def test_a_call_and_then_an_answer(other: ModelClient, llmock: LLMock) -> None:
    llmock.call_tool("read", {"path": "README.md"}).reply("It is a backend.")

    called = await ask(other, request(tools=[TOOL]))
    answered = await ask(other, request(tools=[TOOL]))

    assert [(name, arguments) for _, name, arguments in called.calls] == [("read", '{"path": "README.md"}')]
    assert (called.finish, answered.finish) == ("tool-calls", "stop")
    assert answered.text == "It is a backend."
    assert answered.usage is not None
    assert not answered.usage.estimated


@pytest.mark.parametrize("fault", ["disconnect", "truncate"])
async def test_an_answer_without_its_end_is_a_failure(other: ModelClient, llmock: LLMock, fault: str) -> None:
    llmock.reply("one two three four five six")
    getattr(llmock, fault)(after_chunks=3)

    heard = await ask(other)

    assert heard.text
    assert isinstance(heard.error, ModelProviderError)
    assert heard.error.started
    assert len(llmock.requests) == 1


async def test_a_chunk_that_is_not_json_costs_a_text_no_more_than_itself(other: ModelClient, llmock: LLMock) -> None:
    llmock.reply("one two three four five six").corrupt(after_chunks=3)

    heard = await ask(other)

    assert (heard.text, heard.finish) == ("one two four five six", "stop")


async def test_a_chunk_that_is_not_json_fails_a_tool_call(other: ModelClient, llmock: LLMock) -> None:
    llmock.call_tool("read", {"path": "a/long/path/to/some/file.md"}).corrupt(after_chunks=2)

    heard = await ask(other, request(tools=[TOOL]))

    assert isinstance(heard.error, ModelProviderError)


async def test_a_stall_ends_in_the_idle_timeout(other: ModelClient, llmock: LLMock) -> None:
    llmock.reply("one two three four five six").stall(after_chunks=3, seconds=3)

    heard = await ask(other)

    assert heard.text
    assert isinstance(heard.error, ModelTimeoutError)
    assert heard.error.started


async def test_late_headers_end_in_the_header_timeout(llmock: LLMock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_models.client.MOST_RETRIES", 0)
    client = ModelClient(endpoint(llmock.base_url()), timeouts=Timeouts(header_s=0.3))
    llmock.delay(1.0)

    heard = await ask(client)

    assert isinstance(heard.error, ModelTimeoutError)
    assert "did not answer within 0.3 s" in heard.error.message
    await client.close()


async def test_rate_limits_and_outages_are_repeated_as_asked(other: ModelClient, llmock: LLMock) -> None:
    llmock.rate_limit(times=2, retry_after=0.1).reply("at last")

    heard = await ask(other)

    assert heard.text == "at last"
    assert len(llmock.requests) == 3
    llmock.assert_resilient()


async def test_an_outage_and_an_overflow_have_their_classes(other: ModelClient, llmock: LLMock) -> None:
    llmock.context_overflow()
    overflow = await ask(other)
    llmock.fail(429, times=3, retry_after=0.01)
    limited = await ask(other)
    llmock.outage()
    outage = await ask(other)

    assert isinstance(overflow.error, ContextOverflowError)
    assert isinstance(limited.error, ModelRateLimitedError)
    assert isinstance(outage.error, ModelProviderError)
