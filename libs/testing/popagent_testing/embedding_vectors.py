"""Deterministic embeddings for tests: texts that share words lie close together."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Iterable
from typing import Any, Final

import orjson

DIMENSIONS: Final = 384
PLACES_PER_WORD: Final = 8


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a unit vector; equal texts give equal vectors in every process."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=4 * PLACES_PER_WORD).digest()
        for at in range(0, len(digest), 4):
            number = int.from_bytes(digest[at : at + 4], "big")
            vector[(number >> 1) % dimensions] += 1.0 if number & 1 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def embeddings_body(body: dict[str, Any]) -> bytes:
    """Return the answer of `/v1/embeddings`; base64 when asked, as the official client does."""
    given = body.get("input", "")
    texts: Iterable[Any] = given if isinstance(given, list) else [given]
    size = int(body.get("dimensions") or DIMENSIONS)
    items = []
    for index, text in enumerate(texts):
        vector: Any = embed(str(text), size)
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        items.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": len(items), "total_tokens": len(items)}
    return orjson.dumps({"object": "list", "data": items, "model": body.get("model"), "usage": usage})
