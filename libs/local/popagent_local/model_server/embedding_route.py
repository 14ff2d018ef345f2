"""`POST /v1/embeddings`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from popagent_local.model_server.artefacts import EMBEDDING_MODEL_ID
from popagent_local.model_server.embeddings import BATCH, DIMENSIONS, Embedder
from popagent_local.model_server.shim import BadRequestError

MOST_INPUTS: Final = 2_048


@dataclass(frozen=True)
class EmbeddingRequest:
    """What is to be embedded; `as_base64` is the form that OpenAI's own clients ask for."""

    texts: list[str]
    as_base64: bool


def parse(body: Any) -> EmbeddingRequest:
    """Return the request.

    Raises:
        BadRequestError: It asks for something else than 384 dimensions of texts; `field` names it.
    """
    if not isinstance(body, dict):
        raise BadRequestError("The body must be a JSON object.")
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise BadRequestError("input must be a text or a list of texts, none of them empty.", field="input")
    if len(texts) > MOST_INPUTS:
        raise BadRequestError(f"input may hold at most {MOST_INPUTS} texts.", field="input")
    if body.get("dimensions") not in (None, DIMENSIONS):
        raise BadRequestError(f"{EMBEDDING_MODEL_ID} gives {DIMENSIONS} dimensions, no other.", field="dimensions")
    if body.get("encoding_format") not in (None, "float", "base64"):
        raise BadRequestError("encoding_format is float or base64.", field="encoding_format")
    return EmbeddingRequest(texts, body.get("encoding_format") == "base64")


async def embed(embedder: Embedder, request: EmbeddingRequest) -> dict[str, Any]:
    """Return the response body; between two batches other requests get their turn."""
    vectors: dict[int, np.ndarray] = {}
    tokens = 0
    for indices in _batches(request.texts):
        found = await asyncio.to_thread(embedder.embed, [request.texts[index] for index in indices])
        vectors.update(zip(indices, found.vectors, strict=True))
        tokens += found.tokens
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vectors[index], request.as_base64)}
        for index in range(len(request.texts))
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": EMBEDDING_MODEL_ID, "usage": usage}


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indices of texts of like length together: the shorter ones of a batch are padded to the longest."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def _encoded(vector: np.ndarray, as_base64: bool) -> str | list[float]:
    if as_base64:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in vector]
