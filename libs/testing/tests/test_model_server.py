from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import IncompleteRead
from typing import Any

import orjson
import pytest

from popagent_testing.embedding_vectors import embed
from popagent_testing.model_process import ModelProcess
from popagent_testing.model_server import ModelList, ModelServer, Reply, ScriptedCall


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def post(url: str, path: str, body: dict[str, Any], key: str = "") -> bytes:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(url + path, orjson.dumps(body), headers=headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return bytes(response.read())


def chat(url: str, text: str = "hello there", **fields: Any) -> list[Any]:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": text}], **fields}
    lines = post(url, "/chat/completions", body).decode().splitlines()
    return [orjson.loads(line[6:]) if line[6] == "{" else line[6:] for line in lines if line.startswith("data: ")]


def test_an_unscripted_request_is_echoed_word_by_word(server: ModelServer) -> None:
    server.script()

    events = chat(server.url, "hello there", stream_options={"include_usage": True})

    assert [event["choices"][0]["delta"].get("content") for event in events[1:3]] == ["hello", " there"]
    assert events[-2]["usage"]["prompt_tokens"] == 2
    assert events[-1] == "[DONE]"
    assert server.requests[0].body["messages"][0]["content"] == "hello there"


def test_replies_are_used_in_order_and_a_conditional_one_waits(server: ModelServer) -> None:
    server.script(Reply(text="only for tea", when="tea", times=0), Reply(text="first"), Reply(text="second", chunks=2))

    answers = [chat(server.url, text)[1]["choices"][0]["delta"]["content"] for text in ("a", "tea", "b", "tea")]

    assert answers == ["first", "only", "sec", "only"]


def test_tool_calls_are_streamed_in_fragments(server: ModelServer) -> None:
    server.script(Reply(tool_calls=(ScriptedCall("read", '{"path": "README.md"}'),)))

    deltas = [event["choices"][0]["delta"] for event in chat(server.url)[:-1]]

    fragments = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas if delta.get("tool_calls")]
    assert "".join(fragments) == '{"path": "README.md"}'
    assert len(fragments) > 2


def test_a_cut_reply_breaks_the_connection(server: ModelServer) -> None:
    server.script(Reply(text="one two three", fault="cut", after=1))

    with pytest.raises(IncompleteRead):
        chat(server.url)

    assert server.requests[0].outcome == "answered"


def test_the_key_and_the_status_are_enforced() -> None:
    with ModelServer(key="right") as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(server.url, "/chat/completions", {"messages": []}, key="wrong")
        server.script(Reply(status=429, retry_after="3"))
        with pytest.raises(urllib.error.HTTPError) as limited:
            post(server.url, "/chat/completions", {"messages": []}, key="right")

    assert refused.value.code == 401
    assert (limited.value.code, limited.value.headers["retry-after"]) == (429, "3")


def test_embeddings_are_deterministic_and_near_for_shared_words(server: ModelServer) -> None:
    body = {"model": "e", "input": ["a red apple", "a red apple", "a red pear", "quantum field theory"]}

    data = orjson.loads(post(server.url, "/embeddings", body))["data"]

    vectors = [item["embedding"] for item in data]
    near, far = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in (vectors[2], vectors[3]))
    assert vectors[0] == vectors[1] == pytest.approx(embed("a red apple"))
    assert len(vectors[0]) == 384
    assert near > 0.4 > far


def test_another_process_is_scripted_over_http_and_logs_its_requests() -> None:
    with ModelProcess("--tokens", "3") as process:
        process.script(Reply(text="scripted over http", tool_calls=(ScriptedCall("grep"),)))
        process.set_models(ids=["a", "b"], fields={"context_length": 100})

        first, second = chat(process.url), chat(process.url)
        with urllib.request.urlopen(process.url + "/models", timeout=10) as response:
            models = orjson.loads(response.read())["data"]

        assert first[1]["choices"][0]["delta"]["content"] == "scripted"
        assert second[1]["choices"][0]["delta"]["content"] == "word0"
        assert [model["id"] for model in models] == ["a", "b"]
        assert [request["outcome"] for request in process.requests()] == ["answered", "answered"]


def test_the_model_list_can_be_down_or_nonsense(server: ModelServer) -> None:
    server.models = ModelList(status=503)
    with pytest.raises(urllib.error.HTTPError) as down:
        urllib.request.urlopen(server.url + "/models", timeout=10)
    server.models = ModelList(raw="<html>")
    with urllib.request.urlopen(server.url + "/models", timeout=10) as response:
        nonsense = response.read()

    assert down.value.code == 503
    assert nonsense == b"<html>"
