"""List, change and check the profiles of the agents."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from popagent_bus import Handlers
from popagent_chat.agents import store
from popagent_chat.agents.health import findings_of
from popagent_chat.deps import ChatDeps
from popagent_chat.models.choice import model_choice
from popagent_chat.skills.health import skills_checked
from popagent_kit.errors import InvalidInputError, NotFoundError, RevisionConflictError
from popagent_proto.chat.agents import (
    ORCHESTRATOR,
    AgentChanged,
    AgentHealthView,
    AgentList,
    AgentPatch,
    AgentView,
    CheckAgents,
    ListAgents,
    ToolView,
    UpdateAgent,
)
from popagent_proto.patches import given_fields, wire_name
from popagent_tools.catalogue import CATALOGUE

handlers = Handlers[ChatDeps]()
NULLABLE: Final = frozenset({"source_url", "model_override"})


class AgentNotFoundError(NotFoundError):
    """There is no agent with this id."""


@handlers.answers(ListAgents)
async def list_agents(deps: ChatDeps, query: ListAgents) -> AgentList:
    """Return every agent, and the tools that its profile may name."""
    async with deps.pool.acquire() as conn:
        found = await store.LIST.all(conn)
    tools = [ToolView(name=tool.name, access=tool.access, description=tool.description) for tool in CATALOGUE.values()]
    return AgentList(items=found, tools=tools)


@handlers.answers(UpdateAgent)
async def update_agent(deps: ChatDeps, command: UpdateAgent) -> AgentView:
    """Change the given fields; one that is sent as it is stored is neither checked nor a change."""
    given = given_fields(command.body, nullable=NULLABLE)
    async with deps.pool.acquire() as conn:
        seen = _of_revision(await store.GET.first(conn, command.agent_id), command.body.revision)
        choice = await model_choice(conn)
    changes = {name: value for name, value in given.items() if value != getattr(seen, name)}
    if not changes:
        return seen
    _check(seen, changes, CATALOGUE)
    model = changes.get("model_override")
    if isinstance(model, str):
        await deps.models.require_known(model, choice, field="modelOverride")
    if "model_override" in changes:
        changes["override_is_seeded"] = False
    saved = await _store(deps, command, changes)
    deps.next_turn_changed()
    return saved


@handlers.answers(CheckAgents)
async def check_agents(deps: ChatDeps, query: CheckAgents) -> AgentHealthView:
    """Compare every profile with the tools and models that there are, and every enabled skill with the rules."""
    async with deps.pool.acquire() as conn:
        agents = await store.LIST.all(conn)
        choice = await model_choice(conn)
        skills = [await skills_checked(conn, agent.id) for agent in agents]
    models = await deps.models.offered(choice)
    findings = findings_of(agents, CATALOGUE, models) + [finding for each in skills for finding in each.findings]
    ok = all(finding.severity == "note" for finding in findings)
    looked_at = sum(each.count for each in skills)
    return AgentHealthView(ok=ok, agents=len(agents), skills=looked_at, models_known=models.known, findings=findings)


def _of_revision(stored: AgentView | None, revision: int) -> AgentView:
    """Return the stored agent.

    Raises:
        AgentNotFoundError: No such agent.
        RevisionConflictError: Another revision is stored; the agent is beside the error.
    """
    if stored is None:
        raise AgentNotFoundError
    if stored.revision != revision:
        raise RevisionConflictError(extra={"agent": stored.wire()})
    return stored


def _check(agent: AgentView, changes: dict[str, Any], known: Collection[str]) -> None:
    unknown = [name for name in changes.get("tools", ()) if name not in known]
    if unknown:
        raise InvalidInputError(f"There is no tool “{unknown[0]}”. There are: {', '.join(known)}.", field="tools")
    if agent.id == ORCHESTRATOR and changes.get("delegable"):
        raise InvalidInputError("The orchestrator delegates; nobody delegates to it.", field="delegable")


async def _store(deps: ChatDeps, command: UpdateAgent, changes: dict[str, Any]) -> AgentView:
    async with deps.outbox.transaction() as conn:
        # Somebody else may have saved while the model was looked up.
        stored = _of_revision(await store.LOCK.first(conn, command.agent_id), command.body.revision)
        wanted = stored.model_copy(update=changes)
        saved = await store.UPDATE.one(
            conn,
            wanted.id,
            wanted.name,
            wanted.delegation_description,
            wanted.instructions,
            wanted.source_url,
            wanted.workspace_access,
            wanted.browser_access,
            wanted.delegable,
            wanted.tools,
            wanted.model_override,
            wanted.override_is_seeded,
        )
        changed = sorted(wire_name(AgentPatch, name) for name in changes if name in AgentPatch.model_fields)
        await deps.outbox.add(
            conn,
            AgentChanged(
                aggregate_id=saved.id, version=saved.revision, agent_id=saved.id, name=saved.name, changed=changed
            ),
        )
    return saved
