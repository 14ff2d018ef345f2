"""List, register, rename and forget workspaces."""

from __future__ import annotations

import asyncio

from popagent_bus import Handlers
from popagent_chat.channels import store as channels
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import store as sessions
from popagent_chat.workspaces import store
from popagent_chat.workspaces.candidates import candidates
from popagent_chat.workspaces.references import as_extra, closed, in_words
from popagent_db.pool import Connection
from popagent_kit.cursors import UnknownCursorError
from popagent_kit.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    KeyUsedError,
    NotFoundError,
    RevisionConflictError,
)
from popagent_kit.ids import is_client_id
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.chat.workspaces import (
    DeleteWorkspace,
    ListWorkspaceCandidates,
    ListWorkspaces,
    PatchWorkspace,
    RegisterWorkspace,
    WorkspaceCandidates,
    WorkspaceChanged,
    WorkspaceDeleted,
    WorkspaceList,
    WorkspaceRegistered,
    WorkspaceView,
)
from popagent_runs.workspaces.folder import ids_of, registered_path, with_state

handlers = Handlers[ChatDeps]()


class WorkspaceExistsError(ConflictError):
    """This directory is registered already."""

    code = "workspace_exists"

    @classmethod
    def as_stored(cls, stored: WorkspaceView, field: str | None = None) -> WorkspaceExistsError:
        """Return the error that names the registration that there is, and has it beside."""
        message = f"This directory is registered already, as “{stored.name}”."
        return cls(message, extra={"workspace": stored.wire()}, field=field)


class WorkspaceNotFoundError(NotFoundError):
    """There is no workspace with this id."""


class DefaultWorkspaceError(ConflictError):
    """The default workspace stays: whatever names no workspace works in it."""

    code = "workspace_default"


class WorkspaceInUseError(ConflictError):
    """Something refers to this workspace."""

    code = "workspace_in_use"


@handlers.answers(ListWorkspaces)
async def list_workspaces(deps: ChatDeps, query: ListWorkspaces) -> WorkspaceList:
    """Return one page, the default workspace first."""
    async with deps.pool.acquire() as conn:
        if query.cursor is not None and not await _is_stored(conn, query.cursor):
            raise UnknownCursorError
        found = await store.LIST.all(conn, query.cursor, query.limit + 1)
    page = found[: query.limit]
    rows = await asyncio.to_thread(lambda: [with_state(deps.workspace_root, each) for each in page])
    more = page[-1].id if len(found) > query.limit else None
    return WorkspaceList(items=rows, next_cursor=more, root=str(deps.workspace_root))


@handlers.answers(RegisterWorkspace)
async def register_workspace(deps: ChatDeps, command: RegisterWorkspace) -> WorkspaceView:
    """Store the registration; the command's id is the workspace's, so a replay finds it."""
    path = await asyncio.to_thread(registered_path, deps.workspace_root, command.body.path)
    same = await _registered_as(deps, path)
    async with deps.outbox.transaction() as conn:
        stored = await store.GET.first(conn, command.command_id)
        if stored is None and same is not None:
            stored = await store.BY_PATH.first(conn, same)
        if stored is None:
            created = await store.INSERT.first(conn, command.command_id, command.body.name, path)
            if created is not None:
                event = WorkspaceRegistered(aggregate_id=created.id, version=created.revision, workspace=created)
                await deps.outbox.add(conn, event)
                return created
            stored = await store.BY_PATH.one(conn, path)
    if stored.id == command.command_id and stored.path == path:
        if stored.revision == 0 and stored.name != command.body.name:
            raise KeyUsedError
        return stored
    raise WorkspaceExistsError.as_stored(stored)


@handlers.answers(PatchWorkspace)
async def patch_workspace(deps: ChatDeps, command: PatchWorkspace) -> WorkspaceView:
    """Rename it; the name that is stored already is no change."""
    async with deps.outbox.transaction() as conn:
        stored = await _locked(conn, command.workspace_id)
        if stored.revision != command.body.revision:
            raise RevisionConflictError(extra={"workspace": stored.wire()})
        if stored.name == command.body.name:
            return stored
        renamed = await store.RENAME.one(conn, stored.id, command.body.name)
        await deps.outbox.add(
            conn, WorkspaceChanged(aggregate_id=renamed.id, version=renamed.revision, workspace=renamed)
        )
    return renamed


@handlers.answers(DeleteWorkspace)
async def delete_workspace(deps: ChatDeps, command: DeleteWorkspace) -> DeletedView:
    """Forget the registration; who is about to refer to it waits for a lock, and then does not find it."""
    async with deps.pool.acquire() as conn:
        _deletable(await store.GET.first(conn, command.workspace_id))
    async with closed(deps.bus, command.workspace_id) as elsewhere, deps.outbox.transaction() as conn:
        stored = _deletable(await store.LOCK.first(conn, command.workspace_id))
        counts = {
            "session": await sessions.COUNT_IN_WORKSPACE.value(conn, stored.id),
            "task": elsewhere.tasks,
            "schedule": elsewhere.schedules,
            "document": elsewhere.documents,
            "message": await channels.COUNT_IN_WORKSPACE.value(conn, stored.id),
        }
        if any(counts.values()):
            raise WorkspaceInUseError(
                f"{in_words(counts)} to this workspace, archived and ended ones counted. Delete them first.",
                extra=as_extra(counts),
            )
        await store.DELETE.run(conn, stored.id)
        event = WorkspaceDeleted(aggregate_id=stored.id, version=stored.revision + 1, workspace_id=stored.id)
        await deps.outbox.add(conn, event)
        elsewhere.check()
    return DeletedView(id=stored.id)


def _deletable(stored: WorkspaceView | None) -> WorkspaceView:
    if stored is None:
        raise WorkspaceNotFoundError
    if stored.is_default:
        raise DefaultWorkspaceError
    return stored


@handlers.answers(ListWorkspaceCandidates)
async def list_candidates(deps: ChatDeps, query: ListWorkspaceCandidates) -> WorkspaceCandidates:
    """Return what could be registered."""
    async with deps.pool.acquire() as conn:
        paths = await store.PATHS.all(conn)

    def look() -> WorkspaceCandidates:
        return candidates(deps.workspace_root, ids_of(deps.workspace_root, paths).keys())

    return await asyncio.to_thread(look)


async def _registered_as(deps: ChatDeps, path: str) -> str | None:
    """Return the path under which this folder is registered, also when that leads to it by another way."""
    async with deps.pool.acquire() as conn:
        paths = await store.PATHS.all(conn)

    def find() -> str | None:
        known = ids_of(deps.workspace_root, paths)
        return next((known[folder] for folder in ids_of(deps.workspace_root, [path]) if folder in known), None)

    return await asyncio.to_thread(find)


async def _locked(conn: Connection, workspace_id: str) -> WorkspaceView:
    stored = await store.LOCK.first(conn, workspace_id)
    if stored is None:
        raise WorkspaceNotFoundError
    return stored


async def _is_stored(conn: Connection, workspace_id: str) -> bool:
    return is_client_id(workspace_id) and await store.GET.first(conn, workspace_id) is not None


async def workspace_for(conn: Connection, workspace_id: str | None) -> WorkspaceView:
    """Return the named workspace, or the default one, kept from deletion until the transaction ends.

    Raises:
        InvalidInputError: No such workspace; the field is `workspaceId`.
    """
    if workspace_id is None:
        default = await store.HOLD_DEFAULT.first(conn)
        if default is None:
            raise ConfigurationError("The default workspace is missing from the database.")
        return default
    found = await store.HOLD.first(conn, workspace_id)
    if found is None:
        raise InvalidInputError("There is no workspace with this id.", field="workspaceId")
    return found
