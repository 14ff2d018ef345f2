"""The door over a listener that the test plays: a real HTTP server on loopback on both sides."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import numpy as np
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from popagent_local.model_server.app import Models, build_app
from popagent_local.model_server.embeddings import BATCH, DIMENSIONS, Embedded, mean_pooled
from popagent_local.model_server.shim import BadRequestError
from popagent_local.model_server.upstream import Upstream

KEY = "the-key-of-this-test"
READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
ASK = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}


class Listener:
    """Plays llama.cpp: says `words` one by one, each when `go` allows it; notices when it is hung up on."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.decision: list[str] | None = None
        """Said before `words`, in answer to the first question."""
        self.go = asyncio.Semaphore(1_000)
        self.asked: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.error: Response | None = None
        self.error_from = 1
        self.silent = False
        self.finish_reason: str | None = "stop"

    async def answer(self, request: Request) -> Response:
        self.asked.append(json.loads(await request.body()))
        self.arrived.set()
        if self.error is not None and len(self.asked) >= self.error_from:
            return self.error
        if self.silent:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.hung_up.set()
            return Response()
        if not self.asked[-1].get("stream"):
            message = {"role": "assistant", "content": "".join(self.words)}
            return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        return StreamingResponse(self.speak(), media_type="text/event-stream")

    async def speak(self) -> AsyncIterator[bytes]:
        try:
            progress = {"total": 9, "cache": 0, "processed": 0, "time_ms": 0}
            yield self.event({"role": "assistant", "content": None}, prompt_progress=progress)
            yield self.event({"role": "assistant", "content": None}, prompt_progress={**progress, "processed": 9})
            words, self.decision = (self.words if self.decision is None else self.decision), None
            for word in words:
                await self.go.acquire()
                yield self.event({"content": word})
            if self.finish_reason is None:
                return
            yield self.event({}, finish_reason=self.finish_reason)
            usage = {"prompt_tokens": 9, "completion_tokens": len(words)}
            yield b"data: " + json.dumps({"choices": [], "usage": usage, "timings": {}}).encode() + b"\n\n"
            yield b"data: [DONE]\n\n"
        except asyncio.CancelledError:
            self.hung_up.set()
            raise

    @staticmethod
    def event(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        body = {"id": "x", "created": 1, "model": "tiny", "object": "chat.completion.chunk", "choices": [choice]}
        return b"data: " + json.dumps({**body, **more}, ensure_ascii=False).encode() + b"\n\n"


class Readable:
    """Grammars that a test can read."""

    def of_schema(self, schema: dict[str, Any]) -> str:
        return json.dumps(schema)

    def of_text(self) -> str:
        return '"text"'


class Letters:
    """Counts letters: a vector that a test can foresee."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.batches.append(len(texts))
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, len(text)] = 1.0
        return Embedded(vectors, sum(map(len, texts)))


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None, timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def models() -> Models:
    return Models(KEY, "tiny", 8_192, Readable(), embedder=Letters())


@pytest.fixture
async def client(listener: Listener, models: Models) -> AsyncIterator[httpx2.AsyncClient]:
    inner = Starlette(routes=[Route("/v1/chat/completions", listener.answer, methods=["POST"])])
    headers = {"Authorization": f"Bearer {KEY}"}
    async with serving(inner) as address, serving(build_app(models)) as door:
        models.upstream = Upstream(address, "inner-key")
        async with httpx2.AsyncClient(base_url=door, headers=headers, timeout=10) as outer:
            yield outer
        await models.upstream.close()


async def stream_of(client: httpx2.AsyncClient, body: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    async with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as response:
        assert response.status_code == 200
        text = (await response.aread()).decode()
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"], text


def said(events: list[dict[str, Any]]) -> str:
    return "".join(c["delta"].get("content") or "" for event in events for c in event["choices"])


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


async def test_while_models_load_health_is_503_and_requests_say_when_to_come_back(
    client: httpx2.AsyncClient, models: Models
) -> None:
    upstream, models.upstream, embedder, models.embedder = models.upstream, None, models.embedder, None
    loading = await client.get("/health")
    chat = await client.post("/v1/chat/completions", json=ASK)
    vector = await client.post("/v1/embeddings", json={"input": "a"})
    models.upstream, models.embedder = upstream, embedder

    assert [r.status_code for r in (loading, chat, vector)] == [503, 503, 503]
    assert chat.headers["retry-after"] == "2"
    assert (await client.get("/health")).status_code == 200


async def test_without_the_key_there_is_nothing_but_health(client: httpx2.AsyncClient) -> None:
    headers = [None, "", "Bearer", "Bearer wrong", KEY, f"Basic {KEY}", f"Bearer {KEY}x"]
    paths = [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/warm-up",
        "/v1/embeddings",
        "/",
        "/docs",
        "/health/",
        "//health",
    ]
    del client.headers["authorization"]

    statuses = {
        (await client.post(path, json=ASK, headers={"authorization": header} if header is not None else {})).status_code
        for header in headers
        for path in paths
    }

    assert statuses == {401}
    assert (await client.get("/health")).status_code == 200


async def test_models_are_listed_with_their_windows(client: httpx2.AsyncClient) -> None:
    rows = (await client.get("/v1/models")).json()["data"]

    assert [(row["id"], row["context_length"]) for row in rows] == [("tiny", 8_192), ("all-minilm-l6-v2", 256)]


BAD: list[tuple[str, Any, int, str]] = [
    ("/v1/chat/completions", {**ASK, "model": "gpt-9"}, 404, "model_not_found"),
    ("/v1/chat/completions", {**ASK, "model": "all-minilm-l6-v2"}, 404, "model_not_found"),
    ("/v1/chat/completions", {"model": "tiny"}, 400, "invalid_request_error"),
    ("/v1/embeddings", {"input": "a", "model": "tiny"}, 404, "model_not_found"),
    ("/v1/embeddings", {"input": "a", "dimensions": 256}, 400, "invalid_request_error"),
    ("/v1/embeddings", {"input": []}, 400, "invalid_request_error"),
    ("/v1/embeddings", {"input": [""]}, 400, "invalid_request_error"),
    ("/v1/embeddings", {"input": [1, 2]}, 400, "invalid_request_error"),
    ("/v1/embeddings", {"input": ["a"] * 2_049}, 400, "invalid_request_error"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, 400, "invalid_request_error"),
    ("/v1/embeddings", [], 400, "invalid_request_error"),
    ("/v1/nothing", {}, 404, "invalid_request_error"),
]


async def test_bad_requests_are_named(client: httpx2.AsyncClient) -> None:
    answers = [await client.post(path, json=body) for path, body, _, _ in BAD]

    named = [(answer.status_code, answer.json()["error"]["code"]) for answer in answers]
    assert named == [(status, code) for _, _, status, code in BAD]


async def test_bodies_that_are_no_json_or_too_large_are_refused(client: httpx2.AsyncClient) -> None:
    broken = await client.post("/v1/embeddings", content=b"{")
    vast = await client.post("/v1/embeddings", content=b" " * (8 * 1024 * 1024 + 1))

    assert (broken.status_code, vast.status_code) == (400, 413)


async def test_a_schema_that_is_no_grammar_is_the_clients_error(client: httpx2.AsyncClient, models: Models) -> None:
    class Strict(Readable):
        def of_schema(self, schema: dict[str, Any]) -> str:
            raise BadRequestError("unknown type 'colour'", field="tools")

    models.grammars = Strict()

    answer = await client.post("/v1/chat/completions", json={**ASK, "tools": [READ]})

    assert answer.status_code == 400
    assert "unknown type" in answer.json()["error"]["message"]


async def test_embeddings_keep_the_order_of_their_texts(client: httpx2.AsyncClient, models: Models) -> None:
    texts = ["x" * (1 + (n * 7) % 100) for n in range(3 * BATCH + 1)]

    answer = (await client.post("/v1/embeddings", json={"input": texts, "dimensions": 384})).json()

    assert [row["index"] for row in answer["data"]] == list(range(len(texts)))
    assert [row["embedding"].index(1.0) for row in answer["data"]] == [len(text) for text in texts]
    assert answer["usage"]["prompt_tokens"] == sum(map(len, texts))
    assert isinstance(models.embedder, Letters)
    assert max(models.embedder.batches) == BATCH


async def test_embeddings_come_as_base64_when_asked_for(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/embeddings", json={"input": "abc", "encoding_format": "base64"})

    values = struct.unpack("<384f", base64.b64decode(answer.json()["data"][0]["embedding"]))
    assert values.index(1.0) == 3


def test_vectors_are_means_of_length_one_over_what_is_no_padding() -> None:
    hidden = np.array([[[3.0, 0.0], [1.0, 0.0], [9.0, 9.0]], [[0.0, 2.0], [0.0, 4.0], [0.0, 6.0]]])
    mask = np.array([[1, 1, 0], [1, 1, 1]])

    assert mean_pooled(hidden, mask).tolist() == [[1.0, 0.0], [0.0, 1.0]]


async def test_a_prompt_is_read_ahead_as_the_next_question_begins(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    body = {**ASK, "tools": [READ]}

    ahead = await client.post("/v1/warm-up", json=body)
    listener.decision = ['{"tool": "none"}']
    await stream_of(client, body)

    warm, question, _ = listener.asked
    assert ahead.json() == {"read": True}
    assert warm["messages"] == question["messages"]
    assert warm["max_tokens"] == 1
    assert (await client.get("/health")).json()["warmUp"] == {"reads": False, "tokensRead": 9}


async def test_reading_ahead_stops_when_somebody_asks(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.silent = True
    reading = asyncio.create_task(client.post("/v1/warm-up", json=ASK))
    await listener.arrived.wait()
    during = (await client.get("/health")).json()["warmUp"]
    listener.silent, listener.words = False, ["Hello"]

    events, _ = await stream_of(client, ASK)
    await listener.hung_up.wait()

    assert said(events) == "Hello"
    assert during == {"reads": True, "tokensRead": 0}
    assert (await reading).json() == {"read": False}


async def test_reading_ahead_stops_when_its_client_leaves(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.silent = True
    reading = asyncio.create_task(client.post("/v1/warm-up", json=ASK))
    await listener.arrived.wait()

    reading.cancel()
    await listener.hung_up.wait()

    async with asyncio.timeout(5):
        while (await client.get("/health")).json()["warmUp"]["reads"]:
            await asyncio.sleep(0.01)


async def test_what_cannot_be_read_ahead_is_an_error(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.error = JSONResponse({"error": {"message": "too long"}}, 400)

    refused = await client.post("/v1/warm-up", json=ASK)
    unknown = await client.post("/v1/warm-up", json={**ASK, "model": "other"})

    assert (refused.status_code, unknown.status_code) == (503, 404)


async def test_nothing_is_read_ahead_while_a_question_is_answered(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    listener.words, listener.go = ["Hello"], asyncio.Semaphore(0)
    answering = asyncio.create_task(stream_of(client, ASK))
    await listener.arrived.wait()

    during = await client.post("/v1/warm-up", json=ASK)
    listener.go.release()
    await answering
    listener.go.release()
    after = await client.post("/v1/warm-up", json=ASK)

    assert [answer.json() for answer in (during, after)] == [{"read": False}, {"read": True}]
