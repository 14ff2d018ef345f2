"""Which texts speak most of what is asked: BM25 over words, in one pass, without an index."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

# The usual constants: how soon a repeated word counts no more, and how much a long text is held against itself.
SATURATION: Final = 1.2
LENGTH_WEIGHT: Final = 0.75
MOST_TERMS: Final = 64
_WORD: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in one spelling; an underscore parts words as a blank does."""
    return _WORD.findall(text.casefold())


def ranked(query: str, texts: Sequence[str], most: int) -> list[tuple[int, float]]:
    """Return index and score of the best `most` texts that hold a word of the query, the best first."""
    terms = list(dict.fromkeys(words_of(query)))[:MOST_TERMS]
    wanted = frozenset(terms)
    counts: list[Counter[str]] = []
    lengths: list[int] = []
    for text in texts:
        words = words_of(text)
        lengths.append(len(words))
        counts.append(Counter(word for word in words if word in wanted))
    holding = Counter(word for count in counts for word in count)
    weights = {term: math.log(1 + (len(texts) - holding[term] + 0.5) / (holding[term] + 0.5)) for term in terms}
    average = sum(lengths) / len(lengths) if texts else 0.0
    scored = [
        (_score(count, length / average, weights), -index)
        for index, (count, length) in enumerate(zip(counts, lengths, strict=True))
        if count
    ]
    return [(-index, score) for score, index in sorted(scored, reverse=True)[:most]]


def _score(count: Counter[str], relative_length: float, weights: dict[str, float]) -> float:
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * relative_length)
    return sum(weights[word] * n * (SATURATION + 1) / (n + norm) for word, n in count.items())
