from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing

import pytest

from popagent_models.client import ModelClient, Timeouts
from popagent_models.endpoint import endpoint
from popagent_models.errors import (
    ContextOverflowError,
    ModelConfigurationError,
    ModelError,
    ModelProviderError,
    ModelRateLimitedError,
    ModelRequestError,
    ModelTimeoutError,
)
from popagent_models.events import TextDelta
from popagent_testing.asking import ask, request
from popagent_testing.model_server import ModelServer, Reply

SECRET = "sk-provider-internal-detail-123456"


@pytest.mark.parametrize("fault", ["malformed", "json", "json-glued-done", "plain-lines"])
async def test_a_quirk_that_hides_nothing_gives_the_whole_answer(
    client: ModelClient, server: ModelServer, fault: str
) -> None:
    server.script(Reply(text="one two three", fault=fault, after=1))

    heard = await ask(client)

    assert (heard.text, heard.finish, heard.error) == ("one two three", "stop", None)
    assert heard.usage is not None


@pytest.mark.parametrize(
    "fault", ["cut", "cut-line", "cut-json", "no-finish", "lying-length", "long-line", "error-event"]
)
async def test_an_answer_without_its_end_fails_and_is_not_repeated_once_text_was_seen(
    client: ModelClient, server: ModelServer, fault: str
) -> None:
    server.script(Reply(text="one two three", fault=fault, after=2, times=0))

    heard = await ask(client)

    assert heard.text.startswith("one two")
    assert isinstance(heard.error, ModelProviderError)
    assert heard.error.started
    assert heard.error.error_class == "provider"
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["empty", "all-malformed", "cut", "cut-json", "no-finish"])
async def test_a_failure_before_the_first_token_is_repeated_twice(
    client: ModelClient, server: ModelServer, fault: str
) -> None:
    server.script(Reply(text="", fault=fault, times=0))

    heard = await ask(client)

    assert isinstance(heard.error, ModelProviderError)
    assert not heard.error.started
    assert len(server.requests) == 3


async def test_a_repeated_attempt_that_works_gives_its_answer_once(client: ModelClient, server: ModelServer) -> None:
    server.script(Reply(status=503), Reply(fault="empty"), Reply(text="at last"))

    heard = await ask(client)

    assert (heard.text, heard.error) == ("at last", None)


@pytest.mark.parametrize(
    ("status", "kind", "error_class", "calls"),
    [
        (401, ModelConfigurationError, "configuration", 1),
        (403, ModelConfigurationError, "configuration", 1),
        (302, ModelConfigurationError, "configuration", 1),
        (400, ModelRequestError, "validation", 1),
        (404, ModelRequestError, "validation", 1),
        (413, ContextOverflowError, "validation", 1),
        (408, ModelTimeoutError, "timeout", 3),
        (429, ModelRateLimitedError, "rate_limit", 3),
        (500, ModelProviderError, "provider", 3),
        (503, ModelProviderError, "provider", 3),
    ],
)
async def test_a_status_has_its_class_and_its_retries(
    client: ModelClient, server: ModelServer, status: int, kind: type[ModelError], error_class: str, calls: int
) -> None:
    server.script(Reply(status=status, error=f"upstream said {SECRET}", times=0))

    heard = await ask(client)

    assert type(heard.error) is kind
    assert heard.error.error_class == error_class
    assert len(server.requests) == calls


@pytest.mark.parametrize(
    "reply", [Reply(status=500, error=SECRET, times=0), Reply(text="a", fault="error-event", after=1, error=SECRET)]
)
async def test_neither_the_sentence_nor_the_log_carries_a_key_of_the_provider(
    client: ModelClient, server: ModelServer, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(reply)

    with caplog.at_level(logging.DEBUG, "popagent_models"):
        heard = await ask(client)

    logged = " ".join(str(record.__dict__) for record in caplog.records)
    assert heard.error is not None
    assert SECRET not in heard.error.message
    assert "provider-internal" not in logged
    assert "detail" in logged


async def test_a_context_overflow_is_told_apart_by_the_providers_words(
    client: ModelClient, server: ModelServer
) -> None:
    server.script(Reply(status=400, error="This model's maximum context length is 8192 tokens"))

    heard = await ask(client)

    assert isinstance(heard.error, ContextOverflowError)
    assert not heard.error.retryable


async def test_retry_after_is_waited_for_when_short_and_handed_on_when_long(
    client: ModelClient, server: ModelServer
) -> None:
    server.script(Reply(status=429, retry_after="0.2"), Reply(text="now"), Reply(status=429, retry_after="60", times=0))

    begun = time.perf_counter()
    short = await ask(client)
    waited_s = time.perf_counter() - begun
    long = await ask(client)

    assert (short.text, waited_s >= 0.2) == ("now", True)
    assert isinstance(long.error, ModelRateLimitedError)
    assert long.error.retry_after_s == 60
    assert len(server.requests) == 3


async def test_a_server_without_headers_is_a_timeout_with_a_plain_sentence(server: ModelServer) -> None:
    client = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=0.1, idle_s=5))
    server.script(Reply(text="too late", header_delay_s=5, times=0))

    heard = await ask(client)

    assert isinstance(heard.error, ModelTimeoutError)
    assert heard.error.message == f"The model server at 127.0.0.1:{server.port} did not answer within 0.1 s."
    await client.close()


async def test_a_late_attempt_is_not_repeated(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_models.client.RETRY_WITHIN_S", 0.05)
    client = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=0.1))
    server.script(Reply(header_delay_s=5, times=0))

    heard = await ask(client)

    assert isinstance(heard.error, ModelTimeoutError)
    assert len(server.requests) == 1
    await client.close()


async def test_silence_in_the_middle_keeps_the_text_and_ends_in_the_idle_timeout(server: ModelServer) -> None:
    client = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=5, idle_s=0.3))
    server.script(Reply(text="one two three", fault="stall", after=2))

    heard = await ask(client)
    await server.until(lambda state: state.requests[0].outcome == "client-left")

    assert heard.text == "one two"
    assert isinstance(heard.error, ModelTimeoutError)
    assert heard.error.started
    await client.close()


async def test_heartbeats_keep_a_slow_answer_alive_beyond_the_idle_timeout(server: ModelServer) -> None:
    client = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=5, idle_s=0.5))
    server.script(Reply(text="worth the wait", heartbeats=12, heartbeat_s=0.06))

    begun = time.perf_counter()
    heard = await ask(client)

    assert (heard.text, heard.error) == ("worth the wait", None)
    assert time.perf_counter() - begun > 0.5
    await client.close()


async def test_a_slow_header_does_not_count_against_the_idle_timeout(server: ModelServer) -> None:
    client = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=5, idle_s=0.3))
    server.script(Reply(text="slow start", header_delay_s=0.5))

    heard = await ask(client)

    assert (heard.text, heard.error) == ("slow start", None)
    await client.close()


async def test_a_server_that_is_not_there_is_a_plain_sentence() -> None:
    with ModelServer() as gone:
        url = gone.url
    client = ModelClient(endpoint(url))

    heard = await ask(client)

    assert isinstance(heard.error, ModelProviderError)
    assert heard.error.message == f"The model server at {endpoint(url).host} cannot be reached. Is it running?"
    await client.close()


async def test_no_model_connected_is_a_configuration_error() -> None:
    heard = await ask(ModelClient(None))

    assert isinstance(heard.error, ModelConfigurationError)
    assert "POPAGENT_MODEL_URL" in heard.error.message


async def test_cancelling_the_consumer_closes_the_upstream_connection(client: ModelClient, server: ModelServer) -> None:
    server.script(Reply(text="one two three", hold=True, after=1))
    seen = asyncio.Event()

    async def consume() -> None:
        async with aclosing(client.stream(request())) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    seen.set()

    task = asyncio.create_task(consume())
    await seen.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await server.until(lambda state: state.requests[0].outcome == "client-left")
    assert task.cancelled()


async def test_leaving_the_loop_early_closes_the_upstream_connection(client: ModelClient, server: ModelServer) -> None:
    server.script(Reply(text="one two three", hold=True, after=1))

    async with aclosing(client.stream(request())) as stream:
        await anext(stream)

    await server.until(lambda state: state.requests[0].outcome == "client-left")


async def test_a_connection_is_used_again_and_a_dropped_one_replaced(client: ModelClient, server: ModelServer) -> None:
    first = await ask(client)
    server.drop_connections()
    second = await ask(client)

    assert (first.text, second.text) == ("hello there", "hello there")


async def test_a_server_that_ends_without_closing_the_body_does_not_delay_the_end(
    client: ModelClient, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_models.client.USAGE_GRACE_S", 0.1)
    server.script(Reply(text="done", fault="open-end"))

    heard = await asyncio.wait_for(ask(client), 2)

    assert (heard.text, heard.finish, heard.error) == ("done", "stop", None)
