"""List, make, move and delete folders with all that is in them; pages move here too."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_db.pool import Connection
from popagent_docs_indexer import library
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.library import adding, changing, claim
from popagent_docs_indexer.pages import store as pages
from popagent_docs_indexer.pages.handlers import changed
from popagent_docs_indexer.paths import DEEPEST, LONGEST_PATH, DocPath, folder_path, is_markdown, page_path
from popagent_docs_indexer.search.index import drop_index_below, index_of_page, put_index
from popagent_docs_indexer.tree import store
from popagent_kit.errors import InvalidInputError, RevisionConflictError
from popagent_proto.common import OpenedView, ReferencesView
from popagent_proto.docs_indexer.pages import PageNotFoundError, PageSummary
from popagent_proto.docs_indexer.tree import (
    CloseToDocs,
    DeleteFolder,
    DocsTree,
    DocsTreeChanged,
    FolderChange,
    FolderDeletedView,
    FolderInUseError,
    FolderNotFoundError,
    FolderView,
    ListDocs,
    MakeFolder,
    MoveDocs,
    MovedView,
    OpenToDocs,
    TreeEntry,
)
from popagent_rows import closing

handlers: Handlers[DocsDeps] = Handlers()

# Bytes of a list, and those that an entry has beside its path.
LONGEST_LIST: Final = 900_000
ENTRY_BYTES: Final = 110


@handlers.answers(ListDocs)
async def list_docs(deps: DocsDeps, query: ListDocs) -> DocsTree:
    """Return one page of it."""
    folder = None if query.folder is None else folder_path(query.folder, field="folder")
    async with deps.pool.acquire() as conn:
        if folder is None:
            found = await store.LIST.all(conn, query.workspace_id, None, query.cursor, query.limit + 1)
            known = bool(found) or await library.IS_KNOWN.value(conn, query.workspace_id)
        else:
            found = await store.LIST_BELOW.all(conn, query.workspace_id, folder.text, query.cursor, query.limit + 1)
            known = bool(found) or await store.IS_FOLDER.value(conn, query.workspace_id, folder.text)
    if not known:
        if folder is not None:
            raise FolderNotFoundError
        await library.require_workspace(deps, query.workspace_id)
    items = _that_fit(found[: query.limit])
    return DocsTree(items=items, next_cursor=items[-1].path if len(items) < len(found) else None)


def _that_fit(found: list[TreeEntry]) -> list[TreeEntry]:
    size = 0
    for number, entry in enumerate(found):
        size += len(entry.path.encode()) + ENTRY_BYTES
        if size > LONGEST_LIST:
            return found[:number]
    return found


@handlers.answers(MakeFolder)
async def make_folder(deps: DocsDeps, command: MakeFolder) -> FolderView:
    """Store it and those above it."""
    path = folder_path(command.path)
    async with adding(deps, command.workspace_id) as (conn, version):
        if not await store.IS_FOLDER.value(conn, command.workspace_id, path.text):
            await claim(conn, command.workspace_id, path)
            await library.ADD_FOLDERS.run(conn, command.workspace_id, [path.text], [path.key])
            await deps.outbox.add(conn, tree_event(command.workspace_id, version, "made", path.text))
    return FolderView(path=path.text)


@handlers.answers(MoveDocs)
async def move_docs(deps: DocsDeps, command: MoveDocs) -> MovedView:
    """Move a page, else a folder."""
    path = folder_path(command.move.path)
    async with changing(deps, command.workspace_id) as (conn, version):
        page = await pages.GET.first(conn, command.workspace_id, path.text)
        if page is not None:
            return await _move_page(deps, conn, page, command)
        if not await store.IS_FOLDER.value(conn, command.workspace_id, path.text):
            raise PageNotFoundError if is_markdown(path.name) else FolderNotFoundError
        return await _move_folder(deps, conn, version, path, command)


async def _move_page(deps: DocsDeps, conn: Connection, page: PageSummary, command: MoveDocs) -> MovedView:
    target = page_path(command.move.to, field="to")
    if command.move.revision not in (None, page.revision):
        raise RevisionConflictError(extra={"page": page.wire()})
    if target.text == page.path:
        return MovedView(kind="page", path=page.path, pages=0)
    await claim(conn, command.workspace_id, target, field="to", own=page.path)
    stored = await pages.STORED.one(conn, page.id)
    index = await index_of_page(stored.body, target)
    moved = await pages.MOVE.one(conn, page.id, target.text, target.key, index.title)
    if moved.title != page.title:
        await put_index(conn, command.workspace_id, page.id, index)
    await deps.outbox.add(conn, changed(moved, "moved", page.path))
    return MovedView(kind="page", path=moved.path, pages=1)


async def _move_folder(deps: DocsDeps, conn: Connection, version: int, path: DocPath, command: MoveDocs) -> MovedView:
    target, workspace_id = folder_path(command.move.to, field="to"), command.workspace_id
    if target.text == path.text:
        return MovedView(kind="folder", path=path.text, pages=0)
    if target.is_in(path):
        raise InvalidInputError("A folder cannot be moved into itself.", field="to")
    extent = await store.EXTENT.one(conn, workspace_id, path.text)
    longest = extent.longest - len(path.text.encode()) + len(target.text.encode())
    deepest = extent.deepest - path.text.count("/") + target.text.count("/")
    if longest > LONGEST_PATH or deepest >= DEEPEST:
        raise InvalidInputError("Something in this folder would have too long or too deep a path there.", field="to")
    await claim(conn, workspace_id, target, field="to", own=path.text)
    places = (workspace_id, path.text, path.key, target.text, target.key)
    await store.MOVE_FOLDERS.run(conn, *places)
    moved = await store.MOVE_PAGES.run(conn, *places)
    await deps.outbox.add(conn, tree_event(workspace_id, version, "moved", target.text, previous_path=path.text))
    return MovedView(kind="folder", path=target.text, pages=moved)


@handlers.answers(DeleteFolder)
async def delete_folder(deps: DocsDeps, command: DeleteFolder) -> FolderDeletedView:
    """Delete it with what is in it, when that is what was seen."""
    path, workspace_id = folder_path(command.path), command.workspace_id
    async with changing(deps, workspace_id) as (conn, version):
        if not await store.IS_FOLDER.value(conn, workspace_id, path.text):
            raise FolderNotFoundError
        content = await store.CONTENT.one(conn, workspace_id, path.text)
        if content.pages + content.folders > 0 and content.revision != command.revision:
            raise FolderInUseError(extra=vars(content))
        await drop_index_below(conn, workspace_id, path.text)
        await store.DELETE_PAGES.run(conn, workspace_id, path.text)
        await store.DELETE_FOLDERS.run(conn, workspace_id, path.text)
        await deps.outbox.add(conn, tree_event(workspace_id, version, "deleted", path.text))
    return FolderDeletedView(path=path.text, pages=content.pages, folders=content.folders)


@handlers.answers(CloseToDocs)
async def close(deps: DocsDeps, command: CloseToDocs) -> ReferencesView:
    """Take nothing new in it, and count."""
    count = await closing.close(
        deps.pool, command.workspace_id, command.closed_by, lock=library.LOCK_TABLE, count=library.COUNT
    )
    return ReferencesView(count=count)


@handlers.answers(OpenToDocs)
async def reopen(deps: DocsDeps, command: OpenToDocs) -> OpenedView:
    """Take pages in it again."""
    await closing.reopen(deps.pool, command.workspace_id, command.closed_by)
    return OpenedView()


def tree_event(
    workspace_id: str, version: int, change: FolderChange, path: str, *, previous_path: str | None = None
) -> DocsTreeChanged:
    """Return the event of a workspace's folders, at a version of its library."""
    return DocsTreeChanged(
        aggregate_id=workspace_id, version=version, change=change, path=path, previous_path=previous_path
    )
