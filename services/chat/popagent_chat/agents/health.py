"""What is wrong with the stored profiles: a rule a fault, no model is asked, and every fault says its repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from popagent_agent.toolset import Tool
from popagent_kit.text import one_line
from popagent_models.catalogue import CatalogueView, is_well_formed
from popagent_proto.chat.agents import ORCHESTRATOR, AgentFinding, AgentView, Severity

# Field on the wire → what it is called in a sentence.
_TEXTS: Final = {
    "name": "name",
    "delegationDescription": "delegation description",
    "instructions": "instructions",
}
LONGEST_SHOWN: Final = 100


def findings_of(agents: Sequence[AgentView], tools: Mapping[str, Tool], models: CatalogueView) -> list[AgentFinding]:
    """Return what is not as it should be: of the company first, then agent by agent in the given order."""
    found = list(_of_the_company(agents))
    for agent in agents:
        found += [*_texts(agent), *_tools(agent, tools), *_delegation(agent), *_model(agent, models)]
    return found


def _of_the_company(agents: Sequence[AgentView]) -> Iterator[AgentFinding]:
    if all(agent.id != ORCHESTRATOR for agent in agents):
        yield _finding(
            ORCHESTRATOR,
            "orchestrator_missing",
            "The agent that people talk to is not stored, so no chat is answered.",
            "Restore the row of agents with this id from a backup; nothing makes it again.",
        )
    elif not any(agent.delegable for agent in agents if agent.id != ORCHESTRATOR):
        yield _finding(
            ORCHESTRATOR,
            "nobody_delegable",
            "No other agent may be delegated to.",
            "Set delegable of an agent to true, unless the orchestrator is meant to work alone.",
            severity="note",
        )


def _texts(agent: AgentView) -> Iterator[AgentFinding]:
    stored = agent.wire()
    for field, words in _TEXTS.items():
        if not stored[field].strip():
            yield _finding(agent.id, "empty_text", f"The {words} is empty.", f"Write the {words}.", field=field)


def _tools(agent: AgentView, tools: Mapping[str, Tool]) -> Iterator[AgentFinding]:
    for name in dict.fromkeys(agent.tools):
        shown = one_line(name, LONGEST_SHOWN)
        if agent.tools.count(name) > 1:
            message = f"The tool “{shown}” is named more than once."
            yield _finding(agent.id, "duplicate_tool", message, "Name each tool once.", field="tools")
        known = tools.get(name)
        if known is None:
            message = f"There is no tool “{shown}”; runs go on without it."
            yield _finding(agent.id, "unknown_tool", message, "Take it out of tools.", field="tools")
        elif known.access != "read" and agent.workspace_access != "read-write":
            yield _finding(
                agent.id,
                "tool_without_access",
                f"The tool “{shown}” can change things, and the access to the workspace is {agent.workspace_access}; "
                "every call is refused.",
                "Set workspaceAccess to read-write, or take the tool out.",
                field="tools",
            )


def _delegation(agent: AgentView) -> Iterator[AgentFinding]:
    if agent.id == ORCHESTRATOR and agent.delegable:
        yield _finding(
            agent.id,
            "orchestrator_delegable",
            "The orchestrator is marked as one to delegate to; it delegates to others.",
            "Set delegable to false.",
            field="delegable",
        )


def _model(agent: AgentView, models: CatalogueView) -> Iterator[AgentFinding]:
    model = agent.model_override
    if model is None:
        return
    shown = one_line(model, LONGEST_SHOWN)
    if not is_well_formed(model):
        message = f"“{shown}” cannot be the id of a model."
        fix = "Choose a model that is offered, or none, to inherit one."
        yield _finding(agent.id, "bad_model_id", message, fix, field="modelOverride")
    elif models.accepts(model):
        return
    elif agent.override_is_seeded:
        yield _finding(
            agent.id,
            "model_inherited",
            f"The model server does not offer the preset model “{shown}”; the agent uses the one that the chat uses.",
            "Nothing has to be done. Choose a fast one that is offered to answer sooner, or none, to always inherit.",
            field="modelOverride",
            severity="note",
        )
    else:
        yield _finding(
            agent.id,
            "model_not_offered",
            f"The model server does not offer the chosen model “{shown}”; runs of this agent fail.",
            "Choose a model that is offered, or none, to inherit one.",
            field="modelOverride",
        )


def _finding(
    agent_id: str, code: str, message: str, fix: str, *, field: str | None = None, severity: Severity = "fault"
) -> AgentFinding:
    return AgentFinding(agent_id=agent_id, code=code, severity=severity, field=field, message=message, fix=fix)
