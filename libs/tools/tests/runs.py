"""A run of a small model in a folder, and a call as the model makes it."""

from __future__ import annotations

from popagent_agent.run_context import AgentProfile, RunContext, RunWorkspace, WorkspaceAccess, WorkspacePolicy
from popagent_agent.toolset import ToolOutcome
from popagent_kit import json
from popagent_models.profile import ModelProfile
from popagent_models.routing import Route
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder
from popagent_testing.runtime_settings import agent_runtime
from popagent_tools.catalogue import CATALOGUE, toolset_for


def run_in(
    folder: ContainedFolder,
    access: WorkspaceAccess,
    allowed: WorkspaceAccess = "read-only",
    commands: Commands | None = None,
) -> RunContext:
    """Return a run whose workspace has `access`, and whose policy lets the agent do what is `allowed`."""
    return RunContext(
        turn_id="t",
        session_id="s",
        trace_id=None,
        settings=agent_runtime(),
        agent=AgentProfile("implementer", "Implementer", "Help.", tuple(CATALOGUE)),
        route=Route("m", "default", "It is the default."),
        model=ModelProfile(8_192, 4, 600, 300.0),
        workspace=RunWorkspace("w", "demo", folder, access, commands=commands),
        policy=WorkspacePolicy(allowed),
    )


async def call(run: RunContext, name: str, **arguments: object) -> ToolOutcome:
    return await toolset_for(list(CATALOGUE)).call(name, json.dumps(arguments).decode(), run)
