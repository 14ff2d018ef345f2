"""What a run begins with, as it was stored at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from popagent_agent.skills import Skill
from popagent_proto.chat.agents import AgentView
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_runs.hooks.rows import StoredHook
from popagent_runs.models.choice import StoredConnection

# By the id of their agent.
Skills: TypeAlias = Mapping[str, tuple[Skill, ...]]


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """Settings, agents with their skills, workspace, hooks and connection; `delegable` are those that get work."""

    settings: AgentRuntimeView
    connection: StoredConnection
    agent: AgentView
    delegable: Sequence[AgentView]
    workspace: WorkspaceView
    hooks: Sequence[StoredHook]
    skills: Skills
