"""Chores of the index: pages of older rules are indexed again, words that stand nowhere are forgotten."""

from __future__ import annotations

from typing import Final

from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.library import changing
from popagent_docs_indexer.pages import store as pages
from popagent_docs_indexer.paths import page_path
from popagent_docs_indexer.search import store
from popagent_docs_indexer.search.index import INDEX_VERSION, index_of_page, put_index

KEEP_UP_EVERY_S: Final = 60.0
FORGET_EVERY_S: Final = 86_400.0
AT_ONCE: Final = 50


async def keep_up(deps: DocsDeps) -> int:
    """Index again what was indexed by older rules, and return how many pages that were."""
    done = 0
    while True:
        async with deps.pool.acquire() as conn:
            behind = await store.BEHIND.all(conn, INDEX_VERSION, AT_ONCE)
        for page in behind:
            await index_again(deps, page.workspace_id, page.id)
        done += len(behind)
        if len(behind) < AT_ONCE:
            return done


async def index_again(deps: DocsDeps, workspace_id: str, page_id: str) -> None:
    """Index a page as it is now, if it is still there."""
    async with changing(deps, workspace_id) as (conn, _):
        page = await pages.STORED.first(conn, page_id)
        if page is None or page.deleted_at is not None:
            return
        index = await index_of_page(page.body, page_path(page.path))
        await put_index(conn, workspace_id, page_id, index)
        await pages.SET_TITLE.run(conn, page_id, index.title)


async def forget_words(deps: DocsDeps) -> None:
    """Forget words that stand nowhere any more."""
    async with deps.pool.acquire() as conn:
        await store.FORGET_WORDS.run(conn)
