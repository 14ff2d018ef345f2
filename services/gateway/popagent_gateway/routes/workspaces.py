"""Workspaces: list, register, rename, forget."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.jobs import ACCEPTED, accepted
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.chat.workspaces import (
    CloneWorkspace,
    CloneWorkspaceBody,
    DeleteWorkspace,
    DeleteWorkspaceSessions,
    ListWorkspaceCandidates,
    ListWorkspaces,
    PatchWorkspace,
    PatchWorkspaceBody,
    RegisterWorkspace,
    WorkspaceCandidates,
    WorkspaceList,
    WorkspaceView,
)
from popagent_proto.common import JobView
from popagent_proto.http import AddWorkspaceBody

router = APIRouter(prefix="/api/workspaces", tags=["workspaces"], route_class=JsonRoute)


@router.get("")
async def list_workspaces(bus: Bus, query: Annotated[ListWorkspaces, Query()]) -> WorkspaceList:
    """List workspaces by name, the default one first."""
    return await bus.ask(query)


@router.get("/candidates")
async def list_candidates(bus: Bus) -> WorkspaceCandidates:
    """List directories below the workspace root that are not registered yet."""
    return await bus.ask(ListWorkspaceCandidates())


@router.post("", status_code=201, response_model=WorkspaceView, responses=ACCEPTED)
async def add_workspace(bus: Bus, body: AddWorkspaceBody, command_id: CommandId) -> WorkspaceView | Response:
    """Register a directory that exists below the workspace root, or clone a repository into a new one there."""
    asked = body.meant()
    if isinstance(asked, CloneWorkspaceBody):
        return accepted(await bus.ask(CloneWorkspace(command_id=command_id, body=asked)))
    return await bus.ask(RegisterWorkspace(command_id=command_id, body=asked))


@router.patch("/{id}")
async def patch_workspace(bus: Bus, id: PathId, body: PatchWorkspaceBody, command_id: CommandId) -> WorkspaceView:  # noqa: A002
    """Rename a workspace; its folder stays where it is."""
    return await bus.ask(PatchWorkspace(command_id=command_id, workspace_id=id, body=body))


@router.delete("/{id}")
async def delete_workspace(bus: Bus, id: PathId) -> DeletedView:  # noqa: A002
    """Forget a workspace that nothing refers to; its folder stays where it is."""
    return await bus.ask(DeleteWorkspace(workspace_id=id))


@router.delete("/{id}/sessions", status_code=202, response_model=JobView)
async def delete_sessions(bus: Bus, id: PathId) -> Response:  # noqa: A002
    """Delete every chat that the workspace has now for good, archived ones too; what runs in them is stopped first."""
    return accepted(await bus.ask(DeleteWorkspaceSessions(workspace_id=id)))
