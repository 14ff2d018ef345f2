"""Deterministic embeddings for tests: texts that share words lie close together."""

from __future__ import annotations

import hashlib
import math
import re
from typing import Final

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
