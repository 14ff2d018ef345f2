"""Who is let in, what is served while models load, and how bad requests are named."""

from __future__ import annotations

from typing import Any

import httpx2

from libs.local.tests.model_server.asking import ASK, KEY
from popagent_local.model_server.app import Models


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
