"""List and register workspaces."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.workspaces import store
from popagent_chat.workspaces.folder import registered_path
from popagent_db.pool import Connection
from popagent_kit.errors import ConfigurationError, ConflictError, InvalidInputError
from popagent_kit.ids import is_client_id
from popagent_proto.chat.workspaces import (
    ListWorkspaces,
    RegisterWorkspace,
    WorkspaceList,
    WorkspaceRegistered,
    WorkspaceView,
)

handlers = Handlers[ChatDeps]()


class WorkspaceExistsError(ConflictError):
    """This directory is registered already."""

    code = "workspace_exists"


@handlers.answers(ListWorkspaces)
async def list_workspaces(deps: ChatDeps, query: ListWorkspaces) -> WorkspaceList:
    """Return one page, the default workspace first."""
    async with deps.pool.acquire() as conn:
        if query.cursor is not None and not await _is_stored(conn, query.cursor):
            raise InvalidInputError("This cursor is not one that a list answered.", field="cursor")
        found = await store.LIST.all(conn, query.cursor, query.limit + 1)
    page = found[: query.limit]
    return WorkspaceList(items=page, next_cursor=page[-1].id if len(found) > query.limit else None)


@handlers.answers(RegisterWorkspace)
async def register_workspace(deps: ChatDeps, command: RegisterWorkspace) -> WorkspaceView:
    """Store the registration; the command's id is the workspace's, so a replay finds it."""
    path = registered_path(deps.workspace_root, command.body.path)
    async with deps.outbox.transaction() as conn:
        created = await store.INSERT.first(conn, command.command_id, command.body.name, path)
        if created is not None:
            event = WorkspaceRegistered(aggregate_id=created.id, version=created.revision, workspace=created)
            await deps.outbox.add(conn, event)
            return created
        stored = await store.GET.first(conn, command.command_id) or await store.BY_PATH.one(conn, path)
    if stored.id == command.command_id and stored.path == path:
        return stored
    raise WorkspaceExistsError(extra={"workspace": stored.wire()})


async def _is_stored(conn: Connection, workspace_id: str) -> bool:
    return is_client_id(workspace_id) and await store.GET.first(conn, workspace_id) is not None


async def workspace_for(conn: Connection, workspace_id: str | None) -> WorkspaceView:
    """Return the named workspace, or the default one.

    Raises:
        InvalidInputError: No such workspace; the field is `workspaceId`.
    """
    if workspace_id is None:
        default = await store.DEFAULT.first(conn)
        if default is None:
            raise ConfigurationError("The default workspace is missing from the database.")
        return default
    found = await store.GET.first(conn, workspace_id)
    if found is None:
        raise InvalidInputError("There is no workspace with this id.", field="workspaceId")
    return found
