"""The documentation of one workspace as a whole: whether there may be some, and who changes it now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from popagent_db.pool import Connection
from popagent_db.query import Query
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.paths import DocPath
from popagent_kit.errors import InvalidInputError, NotFoundError
from popagent_proto.chat.work import CheckWork
from popagent_proto.common import WorkspaceClosingError
from popagent_proto.docs_indexer.pages import PagePathTakenError
from popagent_rows.closing import is_closed


class WorkspaceNotFoundError(NotFoundError):
    """There is no workspace with this id."""


@dataclass(frozen=True)
class Touched:
    """The library of a workspace after its version rose."""

    version: int
    closed: bool


@dataclass(frozen=True)
class Found:
    """A page or a folder at a path, or at one that reads alike; `page_id` is null for a folder."""

    page_id: str | None
    path: str
    key: str


# There is documentation only in workspaces that chat does not delete.
HAS_DOCS: Final = Query(
    bool,
    """
    select exists (select 1 from folders where workspace_id = $1)
        or exists (select 1 from pages where workspace_id = $1 and deleted_at is null)
    """,
)
IS_KNOWN: Final = Query(bool, "select exists (select 1 from libraries where workspace_id = $1)")
ADD: Final = Query(
    Touched,
    f"""
    insert into libraries (workspace_id) values ($1)
    on conflict (workspace_id) do update set version = libraries.version + 1
    returning version, {is_closed("$1")} as closed
    """,
)
TOUCH: Final = Query(
    Touched, "update libraries set version = version + 1 where workspace_id = $1 returning version, false as closed"
)
# Conflicts with ADD, which is how everything new begins.
LOCK_TABLE: Final = Query(None, "lock table libraries in share row exclusive mode")
COUNT: Final = Query(
    int,
    """
    select (select count(*) from folders where workspace_id = $1)
        + (select count(*) from pages where workspace_id = $1 and deleted_at is null)
    """,
)
AT: Final = Query(
    Found,
    """
    select id as page_id, path, key from pages where workspace_id = $1 and key = any($2) and deleted_at is null
    union all
    select null, path, key from folders where workspace_id = $1 and key = any($2)
    """,
)
ADD_FOLDERS: Final = Query(
    None,
    """
    insert into folders (workspace_id, path, key)
    select $1, path, key from unnest($2::text[], $3::text[]) f (path, key)
    """,
)


async def require_workspace(deps: DocsDeps, workspace_id: str) -> None:
    """Raise WorkspaceNotFoundError unless chat knows the workspace."""
    try:
        await deps.bus.ask(CheckWork(workspace_id=workspace_id))
    except InvalidInputError as error:
        raise WorkspaceNotFoundError from error


@asynccontextmanager
async def adding(deps: DocsDeps, workspace_id: str) -> AsyncIterator[tuple[Connection, int]]:
    """Hold the library of a workspace, in a transaction, to add something; gives its new version.

    Raises:
        WorkspaceNotFoundError: There is no such workspace.
        WorkspaceClosingError: It is about to be deleted.
    """
    async with deps.pool.acquire() as conn:
        has_docs = await HAS_DOCS.value(conn, workspace_id)
    if not has_docs:
        await require_workspace(deps, workspace_id)
    async with deps.outbox.transaction() as conn:
        touched = await ADD.one(conn, workspace_id)
        if touched.closed:
            raise WorkspaceClosingError
        yield conn, touched.version


@asynccontextmanager
async def changing(deps: DocsDeps, workspace_id: str) -> AsyncIterator[tuple[Connection, int]]:
    """Hold the library of a workspace, in a transaction, to change what is there; gives its new version.

    Raises:
        WorkspaceNotFoundError: It never had documentation, or is none.
    """
    async with deps.outbox.transaction() as conn:
        touched = await TOUCH.first(conn, workspace_id)
        if touched is None:
            raise WorkspaceNotFoundError("There is no documentation in this workspace.")
        yield conn, touched.version


async def claim(
    conn: Connection, workspace_id: str, path: DocPath, *, field: str = "path", own: str | None = None
) -> None:
    """Make the folders above `path`, which nothing else may have; the library is held.

    `own` is a path that may read like this one: of what is moved here.

    Raises:
        PagePathTakenError: Something is there, at a path that reads like it, or above it as one of its folders.
    """
    above = path.above()
    wanted = {each.key: each for each in (*above, path)}
    found = await AT.all(conn, workspace_id, list(wanted))
    for there in found:
        if there.path == own:
            continue
        asked = wanted[there.key]
        if asked.key == path.key or there.page_id is not None or there.path != asked.text:
            raise _taken(there, asked, field)
    missing = [each for each in above if each.key not in {there.key for there in found}]
    if missing:
        await ADD_FOLDERS.run(conn, workspace_id, [each.text for each in missing], [each.key for each in missing])


def _taken(there: Found, asked: DocPath, field: str) -> PagePathTakenError:
    kind = "folder" if there.page_id is None else "page"
    alike = "" if there.path == asked.text else f", which reads like “{asked.text}”"
    known = {"path": there.path, "kind": kind} | ({} if there.page_id is None else {"pageId": there.page_id})
    return PagePathTakenError(f"There is a {kind} “{there.path}”{alike}.", field=field, extra={"there": known})
