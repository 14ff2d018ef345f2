"""Settings singletons."""

from __future__ import annotations

from fastapi import APIRouter

from popagent_gateway.asking import Bus, CommandId
from popagent_gateway.bodies import JsonRoute
from popagent_proto.chat.settings import AgentRuntimePatch, AgentRuntimeView, GetAgentRuntime, PatchAgentRuntime

router = APIRouter(prefix="/api/settings", tags=["settings"], route_class=JsonRoute)


@router.get("/agent-runtime")
async def get_agent_runtime(bus: Bus) -> AgentRuntimeView:
    """Return the runtime settings of the agents."""
    return await bus.ask(GetAgentRuntime())


@router.patch("/agent-runtime")
async def patch_agent_runtime(bus: Bus, body: AgentRuntimePatch, command_id: CommandId) -> AgentRuntimeView:
    """Change runtime settings; the next run uses them."""
    return await bus.ask(PatchAgentRuntime(command_id=command_id, body=body))
