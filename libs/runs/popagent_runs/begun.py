"""From what was stored of a run to the context that its loop gets, once, at its beginning."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from popagent_agent.company import Company
from popagent_agent.run_context import AgentProfile, RunContext, RunWorkspace, WorkspacePolicy
from popagent_models.client import ModelClient
from popagent_models.errors import ModelError
from popagent_models.profile import ModelProfile
from popagent_models.routing import Route
from popagent_proto.chat.agents import AgentView
from popagent_runs.hooks.asking import HookCalls
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.running import RunHooks
from popagent_runs.models.choice import ModelChoice
from popagent_runs.models.gateway import ModelGateway, RoutedModel
from popagent_runs.stored import Skills, StoredRun
from popagent_runs.workspaces.briefs import BRIEFS
from popagent_runs.workspaces.folder import open_folder
from popagent_sandbox.commands import Commands
from popagent_sandbox.grant_file import granted
from popagent_web.search import WebSearch

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """What the runs of one process share."""

    home: Path
    workspace_root: Path
    models: ModelGateway
    hooks: HookCalls
    hook_audit: HookAudit
    web: WebSearch
    company: Company


@dataclass(frozen=True, kw_only=True)
class RunIds:
    """What a run is called by, in its trace, its hooks and its usage."""

    turn_id: str
    session_id: str | None
    trace_id: str | None
    task_id: str | None = None


@dataclass(frozen=True)
class BegunRun:
    """A run that can be carried out; leave it as a block, so that nothing stays open."""

    context: RunContext
    hooks: RunHooks
    model: ModelClient
    held: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the workspace's folder and let go of the model's connection."""
        self.held.close()


async def begin(parts: RunParts, stored: StoredRun, ids: RunIds, requested_model: str | None) -> BegunRun:
    """Choose the model, open the workspace, and put the context together.

    Raises:
        WorkspaceGoneError: The workspace's folder is missing.
        GrantFileError: What the operator wrote down for its commands cannot be used.
        ModelError: No model can be chosen.
    """
    with ExitStack() as held:
        routed = await parts.models.route(
            ModelChoice(stored.settings, stored.connection),
            override=stored.agent.model_override,
            override_is_seeded=stored.agent.override_is_seeded,
            request=requested_model,
        )
        held.callback(routed.release)
        asked = RunHooks(
            parts.hooks,
            parts.hook_audit,
            stored.hooks,
            session_id=ids.session_id,
            agent_id=stored.agent.id,
            turn_id=ids.turn_id,
            trace_id=ids.trace_id,
            task_id=ids.task_id,
        )
        context = RunContext(
            turn_id=ids.turn_id,
            session_id=ids.session_id or ids.task_id or ids.turn_id,
            trace_id=ids.trace_id,
            settings=stored.settings,
            agent=_profile(stored.agent, routed.route, routed.profile, stored.skills),
            route=routed.route,
            model=routed.profile,
            workspace=await _workspace(parts, stored, held),
            policy=WorkspacePolicy(stored.agent.workspace_access),
            requested_model=requested_model,
            hooks=asked,
            web=parts.web,
            company=parts.company,
            agents=tuple(_routed(agent, routed, stored.skills) for agent in stored.delegable),
        )
        return BegunRun(context, asked, routed.client, held.pop_all())


async def _workspace(parts: RunParts, stored: StoredRun, held: ExitStack) -> RunWorkspace | None:
    # A specialist's own rights hold, whatever the orchestrator may do itself.
    if all(agent.workspace_access == "none" for agent in (stored.agent, *stored.delegable)):
        return None
    workspace = stored.workspace
    folder = open_folder(parts.workspace_root, workspace)
    held.callback(folder.close)
    commands = Commands(folder, granted(parts.home, workspace.path).grant)
    held.callback(commands.close)
    brief = await BRIEFS.of(folder)
    return RunWorkspace(workspace.id, workspace.name, folder, stored.agent.workspace_access, brief, commands)


def _routed(agent: AgentView, routed: RoutedModel, skills: Skills) -> AgentProfile:
    """Return the profile with the model it would use; without one, work that is given to it fails in words."""
    try:
        return _profile(agent, *routed.for_agent(agent.model_override, agent.override_is_seeded), skills)
    except ModelError as error:
        log.warning("no model for an agent", extra={"agent": agent.id, "reason": error.message})
        return _profile(agent, None, None, skills)


def _profile(agent: AgentView, route: Route | None, model: ModelProfile | None, skills: Skills) -> AgentProfile:
    return AgentProfile(
        id=agent.id,
        name=agent.name,
        instructions=agent.instructions,
        tools=tuple(agent.tools),
        workspace_access=agent.workspace_access,
        description=agent.delegation_description,
        delegable=agent.delegable,
        route=route,
        model=model,
        skills=skills.get(agent.id, ()),
    )
