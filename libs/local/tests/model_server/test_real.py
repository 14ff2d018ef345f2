"""The embedded models for real, asked by the unmodified SDK: structure and choice of tool, never wording."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import numpy as np
import psutil
import pytest
from openai import OpenAI

from popagent_local.model_server import weights
from popagent_local.ports import free_port

pytestmark = [pytest.mark.full, pytest.mark.real_model, pytest.mark.timeout(900)]

KEY = "key-of-the-real-model-test"
CHAT = "qwen2.5-coder-1.5b-instruct"
SYSTEM = "You answer questions about the files of a workspace. Paths are relative to its top folder. Be brief."


def function(name: str, description: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TEXT = {"type": "string"}
TOOLS = [
    function("read", "Read a text file of the workspace, for example README.md.", ["path"], path=TEXT),
    function("list", "List the files and folders in a folder of the workspace.", [], path=TEXT),
    function("grep", "Find the lines that contain a word, in all files below a folder.", ["pattern"], pattern=TEXT),
    function("stat", "Tell whether a path is a file or a folder, and its size.", ["path"], path=TEXT),
]
QUESTION = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": "What does this project do? Read the README."},
]


class Server:
    def __init__(self) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "popagent_local.model_server"]
        command += ["--port", str(self.port), "--api-key-env", "TEST_MODEL_KEY"]
        self.process = subprocess.Popen(command, env={**os.environ, "TEST_MODEL_KEY": KEY})
        self.statuses: set[int] = set()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                status = httpx2.get(f"http://127.0.0.1:{self.port}/health").status_code
            except httpx2.TransportError:
                status = 0
            self.statuses.add(status)
            if status == 200:
                return
            time.sleep(0.1)
        raise AssertionError(f"not ready; exit code {self.process.poll()}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if weights.paths() is None:
        pytest.fail("The weights are not complete. Run: popagent model pull")
    server = Server()
    server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(server: Server) -> OpenAI:
    return OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=KEY, timeout=600, max_retries=0)


@pytest.fixture(scope="module")
def read_call(client: OpenAI) -> dict[str, Any]:
    """The first step: the model is asked, and chooses a tool."""
    calls: dict[str, Any] = {"arguments": ""}
    for chunk in client.chat.completions.create(model=CHAT, messages=QUESTION, tools=TOOLS, stream=True):
        choice = chunk.choices[0]
        for call in choice.delta.tool_calls or []:
            calls["id"] = call.id or calls["id"]
            calls["name"] = call.function.name or calls["name"]
            calls["arguments"] += call.function.arguments or ""
        calls["finish_reason"] = choice.finish_reason
    return calls


def test_health_was_503_while_the_models_loaded(server: Server) -> None:
    assert 503 in server.statuses


def test_the_weights_are_in_memory_once(server: Server) -> None:
    found = weights.paths()
    [listener] = psutil.Process(server.process.pid).children()

    assert found is not None
    assert listener.memory_full_info().pss < 1.6 * found.chat.stat().st_size  # 1.9 with a mapped file beside them


def test_a_question_about_a_file_leads_to_the_right_call(read_call: dict[str, Any]) -> None:
    assert (read_call["name"], read_call["finish_reason"]) == ("read", "tool_calls")
    assert json.loads(read_call["arguments"])["path"] == "README.md"


def test_the_answer_after_a_result_uses_the_result(client: OpenAI, read_call: dict[str, Any]) -> None:
    readme = "# Wren\n\nWren waters tomato plants. A sensor in each pot tells it when the soil is dry.\n"
    call = {
        "id": read_call["id"],
        "type": "function",
        "function": {"name": read_call["name"], "arguments": read_call["arguments"]},
    }
    messages = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": read_call["id"], "content": readme},
    ]

    choice = client.chat.completions.create(model=CHAT, messages=messages, tools=TOOLS).choices[0]

    assert choice.finish_reason == "stop"
    assert "tomato" in str(choice.message.content).lower()


def test_required_leads_to_a_call_even_for_a_greeting(client: OpenAI) -> None:
    messages = [QUESTION[0], {"role": "user", "content": "Hello!"}]

    choice = client.chat.completions.create(model=CHAT, messages=messages, tools=TOOLS, tool_choice="required")

    calls = choice.choices[0].message.tool_calls
    assert calls
    assert isinstance(json.loads(calls[0].function.arguments), dict)


def test_a_plain_answer_beside_tools_streams_in_many_chunks(client: OpenAI) -> None:
    messages = [QUESTION[0], {"role": "user", "content": "Hello! Who are you?"}]
    options = {"include_usage": True}

    chunks = list(
        client.chat.completions.create(
            model=CHAT, messages=messages, tools=TOOLS, tool_choice="none", stream=True, stream_options=options
        )
    )

    words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(words) > 3
    assert not "".join(words).startswith("{")
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens >= len(words)


def test_an_answer_has_the_schema_asked_for(client: OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": TEXT, "country": TEXT},
        "required": ["city", "country"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": True}}
    messages = [{"role": "user", "content": "The capital of France, as JSON."}]

    choice = client.chat.completions.create(model=CHAT, messages=messages, response_format=wanted).choices[0]

    assert set(json.loads(str(choice.message.content))) == {"city", "country"}


def test_a_prompt_beyond_the_window_is_an_error_with_its_status(server: Server) -> None:
    body = {"model": CHAT, "messages": [{"role": "user", "content": "x " * 12_000}], "stream": True}
    url, headers = f"http://127.0.0.1:{server.port}/v1/chat/completions", {"Authorization": f"Bearer {KEY}"}

    answer = httpx2.post(url, json=body, headers=headers, timeout=120)

    assert answer.status_code == 400
    assert "context" in answer.json()["error"]["message"]


def test_the_nearest_passage_is_the_one_that_answers(client: OpenAI) -> None:
    passages = [
        "Bread rises because yeast makes gas.",
        "The train leaves at nine.",
        "Whales breathe air at the surface.",
    ]

    rows = client.embeddings.create(model="all-minilm-l6-v2", input=[*passages, "How does dough grow?"]).data

    vectors = np.array([row.embedding for row in rows])
    assert vectors.shape == (4, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)
    assert int(np.argmax(vectors[:3] @ vectors[3])) == 0


def test_sigterm_amid_an_answer_leaves_no_process(server: Server, client: OpenAI) -> None:
    messages = [{"role": "user", "content": "Count from one to five hundred, in words."}]
    children = psutil.Process(server.process.pid).children(recursive=True)
    answer = client.chat.completions.create(model=CHAT, messages=messages, stream=True, max_tokens=500)
    next(iter(answer))
    began = time.monotonic()

    code = server.stop()

    assert (code, [child for child in children if child.is_running()]) == (0, [])
    assert children
    assert time.monotonic() - began < 10
