"""Workspaces: list and register."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from popagent_gateway.asking import Bus, CommandId
from popagent_gateway.bodies import JsonRoute
from popagent_proto.chat.workspaces import (
    ListWorkspaceCandidates,
    ListWorkspaces,
    RegisterWorkspace,
    RegisterWorkspaceBody,
    WorkspaceCandidates,
    WorkspaceList,
    WorkspaceView,
)

router = APIRouter(prefix="/api/workspaces", tags=["workspaces"], route_class=JsonRoute)


@router.get("")
async def list_workspaces(bus: Bus, query: Annotated[ListWorkspaces, Query()]) -> WorkspaceList:
    """List workspaces by name, the default one first."""
    return await bus.ask(query)


@router.get("/candidates")
async def list_candidates(bus: Bus) -> WorkspaceCandidates:
    """List directories below the workspace root that are not registered yet."""
    return await bus.ask(ListWorkspaceCandidates())


@router.post("", status_code=201)
async def register_workspace(bus: Bus, body: RegisterWorkspaceBody, command_id: CommandId) -> WorkspaceView:
    """Register a directory that exists below the workspace root."""
    return await bus.ask(RegisterWorkspace(command_id=command_id, body=body))
