"""Agents: who they are, and whether their profiles are well."""

from __future__ import annotations

from fastapi import APIRouter

from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_proto.chat.agents import (
    AgentHealthView,
    AgentList,
    AgentPatch,
    AgentView,
    CheckAgents,
    ListAgents,
    UpdateAgent,
)

router = APIRouter(prefix="/api/agents", tags=["agents"], route_class=JsonRoute)


@router.get("")
async def list_agents(bus: Bus) -> AgentList:
    """List every agent with its whole profile, and the tools that there are."""
    return await bus.ask(ListAgents())


@router.get("/health")
async def check_agents(bus: Bus) -> AgentHealthView:
    """Check the stored profiles and enabled skills against what there is, and the rules of today."""
    return await bus.ask(CheckAgents())


@router.patch("/{id}")
async def update_agent(
    bus: Bus,
    id: PathId,  # noqa: A002
    body: AgentPatch,
    command_id: CommandId,
) -> AgentView:
    """Change a profile; runs that begin from now on use it."""
    return await bus.ask(UpdateAgent(command_id=command_id, agent_id=id, body=body))
