"""Vectors, in the order of their texts."""

from __future__ import annotations

import base64
import struct

import httpx2
import numpy as np

from libs.local.tests.model_server.listener import Letters
from popagent_local.model_server.app import Models
from popagent_local.model_server.embeddings import BATCH, mean_pooled


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
