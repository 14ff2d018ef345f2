"""The part of a chunk that shows why it was found. No I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import Final

from popagent_docs_indexer.search.words import placed
from popagent_proto.docs_indexer.search import SnippetPart

LONGEST: Final = 280


def snippet(text: str, terms: Collection[str]) -> tuple[list[SnippetPart], int]:
    """Return the window in which the most of `terms` stand, with them marked, and where its first hit is.

    Without a hit it is the beginning, and the place 0.
    """
    hits = [(start, end, term) for term, start, end in placed(text) if term in terms]
    hits.sort()
    begin, first = _window(text, hits)
    end = min(len(text), begin + LONGEST)
    parts: list[SnippetPart] = []
    place = begin
    for hit_start, hit_end in _united(hits, begin, end):
        parts += [SnippetPart(text=text[place:hit_start]), SnippetPart(text=text[hit_start:hit_end], marked=True)]
        place = hit_end
    parts.append(SnippetPart(text=text[place:end]))
    return [part for part in parts if part.text], first


def _window(text: str, hits: list[tuple[int, int, str]]) -> tuple[int, int]:
    if not hits:
        return 0, 0
    starts = [start for start, _, _ in hits]
    best, most = 0, -1.0
    for number, (start, _, _) in enumerate(hits):
        within = hits[number : bisect_left(starts, start + LONGEST - 40)]
        worth = len({term for _, _, term in within}) + len(within) / 1_000
        if worth > most:
            best, most = number, worth
    first = hits[best][0]
    begin = max(0, first - 40)
    if begin > 0:
        # A window begins with a whole word where there is one near.
        blank = text.find(" ", begin, first)
        begin = blank + 1 if blank >= 0 else begin
    return begin, first


def _united(hits: list[tuple[int, int, str]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges of hits within a window; those that overlap are one."""
    ranges: list[tuple[int, int]] = []
    for start, stop, _ in hits:
        if start < begin or stop > end:
            continue
        if ranges and start < ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(stop, ranges[-1][1]))
        else:
            ranges.append((start, stop))
    return ranges
