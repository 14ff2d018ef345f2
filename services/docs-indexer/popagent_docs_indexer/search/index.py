"""What a page is found by: cut and counted before the transaction that stores it, and stored within that."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from popagent_db.pool import Connection
from popagent_docs_indexer.markdown.chunking import Chunk, cut
from popagent_docs_indexer.paths import DocPath
from popagent_docs_indexer.search import store
from popagent_docs_indexer.search.words import terms_of
from popagent_docs_indexer.titles import title_of
from popagent_kit import json

# Raise it when chunks or terms of the same text become others; every page is then indexed again.
INDEX_VERSION: Final = 1
# A word of a title or heading counts as so many of the text.
TITLE_WEIGHT: Final = 3
HEADING_WEIGHT: Final = 2
MOST_COUNTED: Final = 1_000
# Of a page, and their length in letters.
MOST_VOCABULARY: Final = 5_000
VOCABULARY_LENGTH: Final = range(4, 33)
# What takes longer than a moment is counted in a thread.
LONG_TEXT: Final = 20_000


@dataclass(frozen=True)
class IndexedChunk:
    """A chunk as it is stored: its text, its headings, its words, and how often it has which terms."""

    body: str
    sections: list[dict[str, Any]]
    words: int
    terms: Counter[str]


@dataclass(frozen=True)
class PageIndex:
    """What a page is called and found by."""

    title: str
    chunks: list[IndexedChunk]
    vocabulary: list[str]


def index_of(body: str, path: DocPath) -> PageIndex:
    """Cut a page and count its terms."""
    found = cut(body)
    title = title_of(body, found.headings, path)
    named = Counter({term: TITLE_WEIGHT * count for term, count in Counter(terms_of(title)).items()})
    chunks = [_indexed(body, chunk, named) for chunk in found.chunks]
    vocabulary: dict[str, None] = {}
    for chunk in chunks:
        vocabulary |= dict.fromkeys(term for term in chunk.terms if len(term) in VOCABULARY_LENGTH and term.isalpha())
        if len(vocabulary) >= MOST_VOCABULARY:
            break
    return PageIndex(title, chunks, sorted(list(vocabulary)[:MOST_VOCABULARY]))


async def index_of_page(body: str, path: DocPath) -> PageIndex:
    """Do the same without keeping others waiting."""
    return index_of(body, path) if len(body) < LONG_TEXT else await asyncio.to_thread(index_of, body, path)


def _indexed(body: str, chunk: Chunk, named: Counter[str]) -> IndexedChunk:
    text = body[chunk.start : chunk.end]
    terms = Counter(terms_of(text))
    words = terms.total()
    if words:
        terms += named
        for heading in chunk.above:
            for term in terms_of(heading.text):
                terms[term] += HEADING_WEIGHT
        for heading in chunk.inside:
            for term in terms_of(heading.text):
                terms[term] += HEADING_WEIGHT - 1
    above = [{"at": 0, "path": list(chunk.above[-1].path), "anchor": chunk.above[-1].anchor}] if chunk.above else []
    inside = [{"at": each.at - chunk.start, "path": list(each.path), "anchor": each.anchor} for each in chunk.inside]
    return IndexedChunk(text, above + inside, words, terms)


async def put_index(
    conn: Connection, workspace_id: str, page_id: str, index: PageIndex, *, is_new: bool = False
) -> None:
    """Store what a page is found by, in place of what it was found by; the library is held."""
    if not is_new:
        await drop_index(conn, workspace_id, page_id)
    with_words = [chunk for chunk in index.chunks if chunk.words]
    ids = await store.ADD_CHUNKS.all(
        conn,
        page_id,
        workspace_id,
        list(range(len(with_words))),
        [chunk.body for chunk in with_words],
        [json.dumps(chunk.sections).decode() for chunk in with_words],
        [chunk.words for chunk in with_words],
    )
    chunk_of = dict(enumerate(sorted(ids)))
    terms, chunks, occurrences, words = [], [], [], []
    for number, chunk in enumerate(with_words):
        terms += list(chunk.terms)
        chunks += [chunk_of[number]] * len(chunk.terms)
        occurrences += [min(count, MOST_COUNTED) for count in chunk.terms.values()]
        words += [chunk.words] * len(chunk.terms)
    await store.ADD_POSTINGS.run(conn, workspace_id, terms, chunks, occurrences, words)
    await store.ADD_VOCABULARY.run(conn, workspace_id, index.vocabulary)
    words_of_page = sum(chunk.words for chunk in with_words)
    await store.COUNT.run(conn, workspace_id, len(with_words), words_of_page, page_id, INDEX_VERSION)


async def drop_index(conn: Connection, workspace_id: str, page_id: str) -> None:
    """Let a page be found by nothing; the library is held."""
    await store.DROP_OF_PAGE.run(conn, workspace_id, page_id)


async def drop_index_below(conn: Connection, workspace_id: str, folder: str) -> None:
    """Let the pages below a folder be found by nothing; the library is held."""
    await store.DROP_BELOW.run(conn, workspace_id, folder)
