"""Answers to chat requests: streamed or whole, with a call or in words, or broken off."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse

from libs.local.tests.model_server.asking import ASK, READ, said, stream_of
from libs.local.tests.model_server.listener import Listener, Readable
from popagent_local.model_server.app import Models
from popagent_local.model_server.shim import BadRequestError
from popagent_local.model_server.upstream import Upstream


async def test_an_answer_streams_while_the_model_is_still_writing(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    listener.decision = ['{"tool": "no', 'ne"}']
    listener.words = ["On", "e tw", "o"]
    listener.go = asyncio.Semaphore(3)

    async with client.stream("POST", "/v1/chat/completions", json={**ASK, "tools": [READ], "stream": True}) as response:
        seen = ""
        async for line in response.aiter_lines():
            if '"content":"On"' in line or '"content":"e tw"' in line:
                listener.go.release()
            seen += line + "\n"

    assert seen.count('"content":"') == 3
    assert seen.count('"role":"assistant"') == 1
    assert seen.rstrip().endswith("data: [DONE]")
    assert '"finish_reason":"stop"' in seen
    assert [json.loads(question["grammar"]) for question in listener.asked][1] == "text"


async def test_the_second_question_refused_is_an_error_in_the_stream(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    listener.decision = ['{"tool": "none"}']
    listener.error = JSONResponse({"error": {"message": "too long"}}, 400)
    listener.error_from = 2

    events, text = await stream_of(client, {**ASK, "tools": [READ]})

    assert events[-1] == {"error": {"message": "too long"}}
    assert "[DONE]" not in text


async def test_a_tool_call_has_the_standard_form(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.words = ['{"tool": "read", "argu', 'ments": {"pa', 'th": "README.md"}', "}"]

    events, text = await stream_of(client, {**ASK, "tools": [READ], "stream_options": {"include_usage": True}})

    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert calls[0]["function"] == {"name": "read", "arguments": ""}
    assert "".join(call["function"]["arguments"] for call in calls) == '{"path": "README.md"}'
    assert [e["choices"][0]["finish_reason"] for e in events if e["choices"]][-1] == "tool_calls"
    assert events[-1]["usage"] == {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    assert ": 9 of 9 tokens read" in text
    assert json.loads(listener.asked[0]["grammar"])["anyOf"]


async def test_a_plain_answer_is_passed_on_with_every_sign(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.words = ["a\u2028b", "\x0c\x85", "é😀"]

    events, text = await stream_of(client, ASK)

    assert said(events) == "a\u2028b\x0c\x85é😀"
    assert "grammar" not in listener.asked[0]
    assert "prompt_progress" not in text
    assert not any("usage" in event for event in events)


@pytest.mark.parametrize("tools", [[], [READ]])
async def test_without_streaming_the_answer_comes_whole(
    client: httpx2.AsyncClient, listener: Listener, tools: list[Any]
) -> None:
    listener.decision = ['{"tool": ', '"none"}'] if tools else None
    listener.words = ["Y", "es"]

    answer = (await client.post("/v1/chat/completions", json={**ASK, "tools": tools})).json()

    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "Yes"}
    assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("tools", [[], [READ]])
async def test_an_error_of_the_model_keeps_status_and_text(
    client: httpx2.AsyncClient, listener: Listener, stream: bool, tools: list[Any]
) -> None:
    error = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}
    listener.error = JSONResponse(error, 400)

    answer = await client.post("/v1/chat/completions", json={**ASK, "stream": stream, "tools": tools})

    assert (answer.status_code, answer.json()) == (400, error)


async def test_a_client_that_leaves_amid_the_answer_hangs_up_the_model(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    listener.words = ["One", "never"]
    listener.go = asyncio.Semaphore(1)

    async with client.stream("POST", "/v1/chat/completions", json={**ASK, "stream": True}) as response:
        async for line in response.aiter_lines():
            if "One" in line:
                break

    await asyncio.wait_for(listener.hung_up.wait(), 5)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_before_the_first_word_hangs_up_the_model(
    client: httpx2.AsyncClient, listener: Listener, stream: bool
) -> None:
    listener.silent = True

    asking = asyncio.create_task(client.post("/v1/chat/completions", json={**ASK, "stream": stream}))
    await asyncio.wait_for(listener.arrived.wait(), 5)
    asking.cancel()

    await asyncio.wait_for(listener.hung_up.wait(), 5)


async def test_a_model_that_breaks_off_is_not_taken_for_an_end(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.words = ["Half"]
    listener.finish_reason = None

    events, text = await stream_of(client, ASK)
    whole = await client.post("/v1/chat/completions", json={**ASK, "tools": [READ]})

    assert said(events[:-1]) == "Half"
    assert "error" in events[-1]
    assert "[DONE]" not in text
    assert whole.status_code == 503


async def test_a_model_process_that_is_gone_is_a_503(client: httpx2.AsyncClient, models: Models) -> None:
    models.upstream = Upstream("http://127.0.0.1:1", "inner-key")

    answer = await client.post("/v1/chat/completions", json=ASK)

    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "The chat model's process does not answer."


async def test_a_schema_that_is_no_grammar_is_the_clients_error(client: httpx2.AsyncClient, models: Models) -> None:
    class Strict(Readable):
        def of_schema(self, schema: dict[str, Any]) -> str:
            raise BadRequestError("unknown type 'colour'", field="tools")

    models.grammars = Strict()

    answer = await client.post("/v1/chat/completions", json={**ASK, "tools": [READ]})

    assert answer.status_code == 400
    assert "unknown type" in answer.json()["error"]["message"]
