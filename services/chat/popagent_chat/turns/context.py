"""One immutable snapshot at the start of every run: settings, agents and their skills, workspace, route, history."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from pydantic import BaseModel

from popagent_agent.run_context import AgentProfile, RunContext, RunWorkspace, WorkspacePolicy
from popagent_agent.skills import Skill
from popagent_chat.agents import store as agents
from popagent_chat.deps import RunDeps
from popagent_chat.hooks import store as hooks
from popagent_chat.hooks.running import RunHooks, without_refused
from popagent_chat.hooks.store import StoredHook
from popagent_chat.models import store as connections
from popagent_chat.models.choice import ModelChoice
from popagent_chat.models.gateway import RoutedModel
from popagent_chat.models.store import StoredConnection
from popagent_chat.runtime_settings import store as runtime_settings
from popagent_chat.runtime_settings.store import SettingsMissingError
from popagent_chat.sessions import store as sessions
from popagent_chat.skills import store as skills
from popagent_chat.skills.store import SkillStamp
from popagent_chat.threads import store as threads
from popagent_chat.threads.store import StoredMessage
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.workspaces import store as workspaces
from popagent_chat.workspaces.briefs import BRIEFS
from popagent_chat.workspaces.folder import open_folder
from popagent_db.query import Query
from popagent_kit.errors import ConfigurationError
from popagent_models.client import ModelClient
from popagent_models.errors import ModelError
from popagent_models.profile import ModelProfile
from popagent_models.routing import Route
from popagent_proto.chat.agents import AgentView
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_sandbox.commands import Commands
from popagent_sandbox.grant_file import granted

log = logging.getLogger(__name__)

# What a prompt is made from; the prompt itself keeps what fits into the model's window.
HISTORY_MESSAGES: Final = 400
HISTORY_BYTES: Final = 8_000_000
# By the id of their agent.
Skills: TypeAlias = Mapping[str, tuple[Skill, ...]]


@dataclass(frozen=True)
class TurnContext:
    """Everything a turn was started with; leave it as a block, so that nothing stays open."""

    run: RunContext
    hooks: RunHooks
    model: ModelClient
    history: Sequence[dict[str, Any]]
    message: dict[str, Any]
    held: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the workspace's folder and let go of the model's connection."""
        self.held.close()


@dataclass(frozen=True)
class _Stored:
    settings: AgentRuntimeView
    connection: StoredConnection
    agent: AgentView
    delegable: Sequence[AgentView]
    workspace: WorkspaceView
    hooks: Sequence[StoredHook]
    skills: Skills
    history: Sequence[dict[str, Any]]
    message: dict[str, Any]


@dataclass(frozen=True)
class _Asked:
    turn_id: str
    session_id: str
    trace_id: str | None
    model: str | None


class BegunWith(BaseModel):
    """What a run begins with, as JSON of one statement; None where a row is missing."""

    settings: AgentRuntimeView | None
    connection: StoredConnection | None
    agent: AgentView | None
    delegable: list[AgentView] | None
    workspace: WorkspaceView
    hooks: list[StoredHook] | None
    skills: list[SkillStamp] | None
    branch: list[StoredMessage]


# The slices' own statements, asked together: $1 names the agent, $2 the session, $3 where the branch ends, with the
# bounds of BRANCH behind it.
_WORKSPACE_ID: Final = f"(select s.workspace_id from ({sessions.GET.sql.replace('$1', '$2')}) s)"
_BRANCH: Final = re.sub(r"\$(\d)", lambda number: f"${int(number[1]) + 1}", threads.BRANCH.sql)
BEGUN_WITH: Final = Query(
    BegunWith,
    f"""
    select
        (select to_json(x) from ({runtime_settings.GET.sql}) x) as settings,
        (select to_json(x) from ({connections.GET.sql}) x) as connection,
        (select to_json(x) from ({agents.GET.sql}) x) as agent,
        (select json_agg(x) from ({agents.DELEGABLE.sql}) x) as delegable,
        (select to_json(x) from ({workspaces.GET.sql.replace("$1", _WORKSPACE_ID)}) x) as workspace,
        (select json_agg(x) from ({hooks.ENABLED.sql}) x) as hooks,
        (select json_agg(x) from ({skills.STAMPS.sql}) x) as skills,
        (select json_agg(x order by x.seq) from ({_BRANCH}) x) as branch
    """,
)


# The same for a turn that is not asked yet, where the last one was: $1 names the agent.
_LAST_WORKSPACE: Final = """
    (select coalesce(
        (select s.workspace_id from sessions s order by s.updated_at desc limit 1),
        (select w.id from workspaces w where w.is_default)
    ))
"""
NEXT_WITH: Final = Query(
    BegunWith,
    f"""
    select
        (select to_json(x) from ({runtime_settings.GET.sql}) x) as settings,
        (select to_json(x) from ({connections.GET.sql}) x) as connection,
        (select to_json(x) from ({agents.GET.sql}) x) as agent,
        (select json_agg(x) from ({agents.DELEGABLE.sql}) x) as delegable,
        (select to_json(x) from ({workspaces.GET.sql.replace("$1", _LAST_WORKSPACE)}) x) as workspace,
        null::json as hooks,
        (select json_agg(x) from ({skills.STAMPS.sql}) x) as skills,
        '[]'::json as branch
    """,
)
NOTHING_SAID: Final = {"id": "", "role": "user", "parts": []}


async def snapshot(deps: RunDeps, turn: LeasedTurn) -> TurnContext:
    """Read it all at one moment.

    Raises:
        ConfigurationError: The settings or the agent are missing.
        WorkspaceGoneError: The workspace's folder is missing.
        GrantFileError: What the operator wrote down for its commands cannot be used.
        UnavailableError: The database does not answer.
        ModelError: No model can be chosen.
    """
    asked = _Asked(turn.id, turn.session_id, turn.trace_id, turn.model)
    return await _opened(deps, await _read(deps, turn), asked)


async def outlook(deps: RunDeps) -> TurnContext | None:
    """Return what the next turn would begin with, None unless the embedded model would answer it; raises as above."""
    async with deps.pool.acquire() as conn:
        begun = await NEXT_WITH.one(conn, agents.ORCHESTRATOR)
        opened = await deps.skills.of(conn, begun.skills or [])
    stored = _stored(begun, opened, [], NOTHING_SAID)
    endpoints = deps.models.endpoints
    if endpoints.chosen(ModelChoice(stored.settings, stored.connection))[1] is not endpoints.embedded:
        return None
    return await _opened(deps, stored, _Asked("", "", None, None))


async def _opened(deps: RunDeps, stored: _Stored, asked: _Asked) -> TurnContext:
    with ExitStack() as held:
        routed = await deps.models.route(
            ModelChoice(stored.settings, stored.connection),
            override=stored.agent.model_override,
            override_is_seeded=stored.agent.override_is_seeded,
            request=asked.model,
        )
        held.callback(routed.release)
        access = stored.agent.workspace_access
        workspace = None
        # A specialist's own rights hold, whatever the orchestrator may do itself.
        if any(agent.workspace_access != "none" for agent in (stored.agent, *stored.delegable)):
            folder = open_folder(deps.workspace_root, stored.workspace)
            held.callback(folder.close)
            commands = Commands(folder, granted(deps.home, stored.workspace.path).grant)
            held.callback(commands.close)
            brief = await BRIEFS.of(folder)
            workspace = RunWorkspace(stored.workspace.id, stored.workspace.name, folder, access, brief, commands)
        run_hooks = RunHooks(
            deps.hooks,
            deps.hook_audit,
            stored.hooks,
            session_id=asked.session_id,
            agent_id=stored.agent.id,
            turn_id=asked.turn_id,
            trace_id=asked.trace_id,
        )
        run = RunContext(
            turn_id=asked.turn_id,
            session_id=asked.session_id,
            trace_id=asked.trace_id,
            settings=stored.settings,
            agent=_profile(stored.agent, routed.route, routed.profile, stored.skills),
            route=routed.route,
            model=routed.profile,
            workspace=workspace,
            policy=WorkspacePolicy(access),
            requested_model=asked.model,
            hooks=run_hooks,
            web=deps.web,
            agents=tuple(_routed(agent, routed, stored.skills) for agent in stored.delegable),
        )
        return TurnContext(run, run_hooks, routed.client, stored.history, stored.message, held.pop_all())


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


async def _read(deps: RunDeps, turn: LeasedTurn) -> _Stored:
    async with deps.pool.acquire() as conn:
        begun = await BEGUN_WITH.one(
            conn, agents.ORCHESTRATOR, turn.session_id, turn.user_message_id, HISTORY_MESSAGES + 1, HISTORY_BYTES
        )
        opened = await deps.skills.of(conn, begun.skills or [])
    *history, message = (stored.ui() for stored in begun.branch)
    return _stored(begun, opened, without_refused(history), message)


def _stored(begun: BegunWith, skills: Skills, history: Sequence[dict[str, Any]], message: dict[str, Any]) -> _Stored:
    if begun.settings is None:
        raise SettingsMissingError
    if begun.agent is None:
        raise ConfigurationError(f"The agent {agents.ORCHESTRATOR} is missing from the database.")
    return _Stored(
        begun.settings,
        begun.connection or connections.NOTHING_STORED,
        begun.agent,
        begun.delegable or [],
        begun.workspace,
        begun.hooks or [],
        skills,
        history,
        message,
    )
