"""One immutable snapshot at the start of every run: settings, agents and their skills, workspace, route, history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import BaseModel

from popagent_agent.run_context import RunContext
from popagent_chat.agents import store as agents
from popagent_chat.deps import RunDeps
from popagent_chat.hooks import store as hooks
from popagent_chat.models import store as connections
from popagent_chat.runtime_settings import store as runtime_settings
from popagent_chat.runtime_settings.store import SettingsMissingError
from popagent_chat.sessions import store as sessions
from popagent_chat.skills import store as skills
from popagent_chat.skills.store import SkillStamp
from popagent_chat.threads import store as threads
from popagent_chat.threads.store import StoredMessage
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.workspaces import store as workspaces
from popagent_db.query import Query
from popagent_kit.errors import ConfigurationError
from popagent_models.client import ModelClient
from popagent_proto.chat.agents import ORCHESTRATOR, AgentView
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_runs.begun import BegunRun, RunIds, begin
from popagent_runs.hooks.rows import StoredHook
from popagent_runs.hooks.running import RunHooks, without_refused
from popagent_runs.models.choice import NOTHING_STORED, ModelChoice, StoredConnection
from popagent_runs.stored import StoredRun

# What a prompt is made from; the prompt itself keeps what fits into the model's window.
HISTORY_MESSAGES: Final = 400
HISTORY_BYTES: Final = 8_000_000


@dataclass(frozen=True)
class TurnContext:
    """Everything a turn was started with; leave it as a block, so that nothing stays open."""

    begun: BegunRun
    history: Sequence[dict[str, Any]]
    message: dict[str, Any]

    @property
    def run(self) -> RunContext:
        """Return what the loop gets."""
        return self.begun.context

    @property
    def hooks(self) -> RunHooks:
        """Return the hooks of this turn."""
        return self.begun.hooks

    @property
    def model(self) -> ModelClient:
        """Return who answers."""
        return self.begun.model

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is open."""
        self.begun.held.close()


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
    begun, stored = await _read(
        deps, BEGUN_WITH, turn.session_id, turn.user_message_id, HISTORY_MESSAGES + 1, HISTORY_BYTES
    )
    *history, message = (each.ui() for each in begun.branch)
    ids = RunIds(turn_id=turn.id, session_id=turn.session_id, trace_id=turn.trace_id)
    opened = await begin(deps, stored, ids, turn.model)
    return TurnContext(opened, without_refused(history), message)


async def outlook(deps: RunDeps) -> TurnContext | None:
    """Return what the next turn would begin with, None unless the embedded model would answer it; raises as above."""
    _, stored = await _read(deps, NEXT_WITH)
    endpoints = deps.models.endpoints
    if endpoints.chosen(ModelChoice(stored.settings, stored.connection))[1] is not endpoints.embedded:
        return None
    nobody = RunIds(turn_id="", session_id="", trace_id=None)
    return TurnContext(await begin(deps, stored, nobody, None), [], NOTHING_SAID)


async def _read(deps: RunDeps, statement: Query[BegunWith], *about: object) -> tuple[BegunWith, StoredRun]:
    async with deps.pool.acquire() as conn:
        begun = await statement.one(conn, ORCHESTRATOR, *about)
        opened = await deps.skills.of(conn, begun.skills or [])
    if begun.settings is None:
        raise SettingsMissingError
    if begun.agent is None:
        raise ConfigurationError(f"The agent {ORCHESTRATOR} is missing from the database.")
    stored = StoredRun(
        settings=begun.settings,
        connection=begun.connection or NOTHING_STORED,
        agent=begun.agent,
        delegable=begun.delegable or [],
        workspace=begun.workspace,
        hooks=begun.hooks or [],
        skills=opened,
    )
    return begun, stored
