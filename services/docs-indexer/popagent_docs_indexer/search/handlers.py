"""Search by words."""

from __future__ import annotations

import logging
from typing import Any, Final

from popagent_bus import Handlers
from popagent_db.pool import Connection
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.paths import folder_path
from popagent_docs_indexer.search import store
from popagent_docs_indexer.search.snippets import snippet
from popagent_docs_indexer.search.store import FoundChunk, Scope
from popagent_docs_indexer.search.words import COMMON, terms_of
from popagent_kit.errors import InvalidInputError
from popagent_proto.docs_indexer.search import DocHit, DocHits, SearchDocs

log = logging.getLogger(__name__)

handlers: Handlers[DocsDeps] = Handlers()

# Of a query; characters, and different terms.
LONGEST_READ: Final = 4_000
MOST_TERMS: Final = 48
MOST_CORRECTED: Final = 4
ALTERNATIVES: Final = 2
# What a word is worth that was taken for one that is not there.
CORRECTED_WORTH: Final = 0.6


@handlers.answers(SearchDocs)
async def search_docs(deps: DocsDeps, query: SearchDocs) -> DocHits:
    """Rank the chunks that have any of the terms."""
    folder = None if query.folder is None else folder_path(query.folder, field="folder")
    if folder is not None and query.workspace_id is None:
        raise InvalidInputError("A folder is one of a workspace; name that, too.", field="folder")
    terms = terms_of_query(query.q)
    async with deps.pool.acquire() as conn:
        scope = await store.SCOPE.one(conn, query.workspace_id)
        if not terms or not scope.numbers:
            return DocHits(items=[])
        worth, corrected = await _corrected(conn, scope, terms)
        args: tuple[Any, ...] = (scope.numbers, list(worth), list(worth.values()), scope.chunks, scope.length)
        if folder is None:
            ranked = await store.RANK.all(conn, *args, query.limit)
        else:
            ranked = await store.RANK_BELOW.all(conn, *args, query.limit, folder.text)
        found = {each.id: each for each in await store.CHUNKS.all(conn, [each.chunk_id for each in ranked])}
    # A page that is written in the meantime has other chunks.
    items = [_hit(found[each.chunk_id], worth, each.score) for each in ranked if each.chunk_id in found]
    return DocHits(items=items, corrected=corrected)


def terms_of_query(text: str) -> list[str]:
    """Return its first terms, each once; without the commonest words, unless it has no others."""
    terms: dict[str, None] = {}
    for term in terms_of(text[:LONGEST_READ]):
        terms[term] = None
        if len(terms) >= MOST_TERMS:
            break
    return [term for term in terms if term not in COMMON] or list(terms)


async def _corrected(conn: Connection, scope: Scope, terms: list[str]) -> tuple[dict[str, float], list[str]]:
    """Return what each term is worth, likenesses of missing ones among them, and what was taken for what."""
    standing = set(await store.STANDING.all(conn, scope.numbers, terms))
    missing = [term for term in terms if term not in standing and len(term) >= 4 and term.isalpha()]
    worth = dict.fromkeys(terms, 1.0)
    corrected: list[str] = []
    if missing and await store.HAS_LIKENESS.value(conn):
        for term in missing[:MOST_CORRECTED]:
            like = await store.LIKE.all(conn, scope.numbers, term, ALTERNATIVES)
            corrected += [f"{term} → {word}" for word in like]
            worth |= {word: CORRECTED_WORTH for word in like if word not in worth}
    return worth, corrected


def _hit(chunk: FoundChunk, worth: dict[str, float], score: float) -> DocHit:
    parts, first = snippet(chunk.body, worth)
    section = next((each for each in reversed(chunk.sections) if each["at"] <= first), None)
    return DocHit(
        workspace_id=chunk.workspace_id,
        page_id=chunk.page_id,
        path=chunk.path,
        title=chunk.title,
        heading=section["path"] if section else [],
        anchor=section["anchor"] if section else "",
        snippet=parts,
        score=score,
    )
