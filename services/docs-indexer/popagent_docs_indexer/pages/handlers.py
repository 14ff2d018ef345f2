"""Read, create, write and delete pages."""

from __future__ import annotations

import hashlib

from popagent_bus import Handlers
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.library import adding, changing, claim
from popagent_docs_indexer.pages import store
from popagent_docs_indexer.paths import page_path
from popagent_docs_indexer.search.index import drop_index, index_of_page, put_index
from popagent_kit.errors import KeyUsedError, RevisionConflictError
from popagent_proto.docs_indexer.pages import (
    KEPT_VERSIONS,
    CreatePage,
    DeletePage,
    DocsPageChanged,
    DocsPageDeleted,
    GetPage,
    PageChange,
    PageDeletedView,
    PageNotFoundError,
    PageSummary,
    PageView,
    WritePage,
)

handlers: Handlers[DocsDeps] = Handlers()


def revision_of(body: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(body.encode()).hexdigest()


def changed(page: PageSummary, change: PageChange, previous_path: str | None = None) -> DocsPageChanged:
    """Return the event of a page as it is now."""
    return DocsPageChanged(
        aggregate_id=page.id, version=page.version, page=page, change=change, previous_path=previous_path
    )


@handlers.answers(GetPage)
async def get_page(deps: DocsDeps, query: GetPage) -> PageView:
    """Return it as it is stored."""
    path = page_path(query.path)
    async with deps.pool.acquire() as conn:
        found = await store.VIEW.first(conn, query.workspace_id, path.text)
    if found is None:
        raise PageNotFoundError
    return found


@handlers.answers(CreatePage)
async def create_page(deps: DocsDeps, command: CreatePage) -> PageSummary:
    """Store it where nothing is."""
    path, body = page_path(command.page.path), command.page.body
    revision, index = revision_of(body), await index_of_page(body, path)
    async with adding(deps, command.workspace_id) as (conn, _):
        known = await store.STORED.first(conn, command.command_id)
        if known is not None:
            if (known.workspace_id, known.path, known.revision) != (command.workspace_id, path.text, revision):
                raise KeyUsedError
            return known.summary()
        await claim(conn, command.workspace_id, path)
        page = await store.INSERT.one(
            conn, command.command_id, command.workspace_id, path.text, path.key, index.title, body, revision
        )
        await put_index(conn, command.workspace_id, page.id, index, is_new=True)
        await deps.outbox.add(conn, changed(page, "created"))
    return page


@handlers.answers(WritePage)
async def write_page(deps: DocsDeps, command: WritePage) -> PageSummary:
    """Replace the text that was read, and keep it in the history."""
    path, body = page_path(command.page.path), command.page.body
    revision, index = revision_of(body), await index_of_page(body, path)
    async with changing(deps, command.workspace_id) as (conn, _):
        stored = await store.GET.first(conn, command.workspace_id, path.text)
        if stored is None:
            raise PageNotFoundError
        if stored.revision == revision:
            return stored
        if stored.revision != command.page.revision:
            raise RevisionConflictError(extra={"page": stored.wire()})
        await store.KEEP_VERSION.run(conn, stored.id)
        page = await store.WRITE.one(conn, stored.id, body, revision, index.title)
        await put_index(conn, command.workspace_id, page.id, index)
        await store.DROP_OLD_VERSIONS.run(conn, stored.id, KEPT_VERSIONS - 1)
        await deps.outbox.add(conn, changed(page, "written"))
    return page


@handlers.answers(DeletePage)
async def delete_page(deps: DocsDeps, command: DeletePage) -> PageDeletedView:
    """Take it out of its folder; it can be brought back."""
    path = page_path(command.path)
    async with changing(deps, command.workspace_id) as (conn, _):
        stored = await store.GET.first(conn, command.workspace_id, path.text)
        if stored is None:
            raise PageNotFoundError
        if stored.revision != command.revision:
            raise RevisionConflictError(extra={"page": stored.wire()})
        await store.DELETE.run(conn, stored.id)
        await drop_index(conn, command.workspace_id, stored.id)
        event = DocsPageDeleted(
            aggregate_id=stored.id,
            version=stored.version + 1,
            page_id=stored.id,
            workspace_id=stored.workspace_id,
            path=stored.path,
        )
        await deps.outbox.add(conn, event)
    return PageDeletedView(id=stored.id, path=stored.path)
