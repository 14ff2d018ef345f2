"""Whether what a task or a schedule names exists here."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.agents import store as agents
from popagent_chat.deps import ChatDeps
from popagent_chat.models.choice import model_choice
from popagent_chat.workspaces.handlers import workspace_for
from popagent_kit.errors import InvalidInputError
from popagent_proto.chat.work import CheckWork, WorkPlace

handlers = Handlers[ChatDeps]()


@handlers.answers(CheckWork)
async def check_work(deps: ChatDeps, query: CheckWork) -> WorkPlace:
    """Refuse the first thing that is not there."""
    async with deps.pool.acquire() as conn:
        workspace = await workspace_for(conn, query.workspace_id)
        agent = None if query.agent_id is None else await agents.GET.first(conn, query.agent_id)
        choice = await model_choice(conn)
    if query.agent_id is not None:
        if agent is None:
            raise InvalidInputError(f"There is no agent “{query.agent_id}”.", field="agentId")
        if not agent.takes_work:
            raise InvalidInputError(f"No work can be given to {agent.name}: its profile says so.", field="agentId")
    if query.model is not None:
        await deps.models.require_known(query.model, choice, field="model")
    return WorkPlace(workspace_id=workspace.id)
