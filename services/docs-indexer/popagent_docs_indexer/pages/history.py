"""The texts that a page had, pages that were deleted, and how both come back."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from popagent_bus import Handlers
from popagent_db.pool import Connection, Pool
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.library import adding, claim, require_workspace
from popagent_docs_indexer.pages import store
from popagent_docs_indexer.pages.handlers import changed
from popagent_docs_indexer.pages.store import StoredPage
from popagent_docs_indexer.paths import page_path
from popagent_docs_indexer.search.index import index_of_page, put_index
from popagent_kit import cursors
from popagent_kit.cursors import UnknownCursorError
from popagent_kit.errors import NotFoundError, RevisionConflictError
from popagent_proto.docs_indexer.pages import (
    KEPT_DELETED_DAYS,
    KEPT_VERSIONS,
    DeletedPages,
    GetPageVersion,
    ListDeletedPages,
    PageHistory,
    PageNotFoundError,
    PageSummary,
    PageVersionView,
    ReadHistory,
    RestorePage,
)
from popagent_rows.pruning import prune

handlers: Handlers[DocsDeps] = Handlers()

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
PRUNE_PERIOD_S: Final = 3_600.0


class VersionNotFoundError(NotFoundError):
    """The page has no text of this version, or none any more."""


@handlers.answers(ReadHistory)
async def read_history(deps: DocsDeps, query: ReadHistory) -> PageHistory:
    """Return one page of it."""
    if query.cursor is not None and not _NUMBER.fullmatch(query.cursor):
        raise UnknownCursorError
    before = None if query.cursor is None else int(query.cursor)
    async with deps.pool.acquire() as conn:
        page = await store.BY_ID.first(conn, query.workspace_id, query.page_id)
        if page is None:
            raise PageNotFoundError
        found = await store.HISTORY.all(conn, query.page_id, before, query.limit + 1)
    items = found[: query.limit]
    more = len(found) > query.limit
    return PageHistory(page=page, items=items, next_cursor=str(items[-1].version) if more else None)


@handlers.answers(GetPageVersion)
async def get_version(deps: DocsDeps, query: GetPageVersion) -> PageVersionView:
    """Return it with its text."""
    async with deps.pool.acquire() as conn:
        if await store.BY_ID.first(conn, query.workspace_id, query.page_id) is None:
            raise PageNotFoundError
        return await _version(conn, query.page_id, query.version)


@handlers.answers(RestorePage)
async def restore_page(deps: DocsDeps, command: RestorePage) -> PageSummary:
    """Write the old text as a new one, and put a deleted page where it was."""
    async with adding(deps, command.workspace_id) as (conn, _):
        stored = await store.STORED.first(conn, command.page_id)
        if stored is None or stored.workspace_id != command.workspace_id:
            raise PageNotFoundError
        version = await _version(conn, command.page_id, command.asked.version)
        if stored.deleted_at is None and stored.revision != command.asked.revision:
            raise RevisionConflictError(extra={"page": stored.summary().wire()})
        page = await _restored(conn, stored, version)
        if page.version != stored.version:
            await deps.outbox.add(conn, changed(page, "restored"))
    return page


async def _restored(conn: Connection, stored: StoredPage, version: PageVersionView) -> PageSummary:
    page, path = stored.summary(), page_path(stored.path)
    if stored.deleted_at is None and version.revision == stored.revision:
        return page
    index = await index_of_page(version.body, path)
    if stored.deleted_at is not None:
        await claim(conn, stored.workspace_id, path)
        page = await store.UNDELETE.one(conn, stored.id)
    if version.revision != stored.revision:
        await store.KEEP_VERSION.run(conn, stored.id)
        page = await store.WRITE.one(conn, stored.id, version.body, version.revision, index.title)
        await store.DROP_OLD_VERSIONS.run(conn, stored.id, KEPT_VERSIONS - 1)
    await put_index(conn, stored.workspace_id, stored.id, index)
    return page


@handlers.answers(ListDeletedPages)
async def list_deleted(deps: DocsDeps, query: ListDeletedPages) -> DeletedPages:
    """Return those that can be brought back."""
    before, page_id = (None, None) if query.cursor is None else cursors.decode(query.cursor)
    async with deps.pool.acquire() as conn:
        found = await store.DELETED.all(conn, query.workspace_id, before, page_id, query.limit + 1)
    if not found:
        await require_workspace(deps, query.workspace_id)
    items = found[: query.limit]
    more = len(found) > query.limit
    return DeletedPages(items=items, next_cursor=cursors.encode(items[-1].deleted_at, items[-1].id) if more else None)


async def _version(conn: Connection, page_id: str, version: int) -> PageVersionView:
    found = await store.VERSION.first(conn, page_id, version)
    if found is None:
        raise VersionNotFoundError
    return found


async def drop_deleted(pool: Pool, kept: timedelta = timedelta(days=KEPT_DELETED_DAYS)) -> int:
    """Forget pages that were deleted longer than `kept` ago, and return how many."""
    return await prune(pool, store.PRUNE, kept)
