"""Rows of agents, read at the start of every run."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel

from popagent_db.query import Query

# The user's spelling; the one agent that a person talks to (CH-1).
ORCHESTRATOR: Final = "orchistrator"


class AgentRow(BaseModel):
    """Everything that makes an agent what it is."""

    id: str
    name: str
    delegation_description: str
    instructions: str
    source_url: str | None
    workspace_access: Literal["none", "read-only", "read-write"]
    browser_access: bool
    delegable: bool
    tools: list[str]
    model_override: str | None
    revision: int


GET: Final = Query(
    AgentRow,
    """
    select id, name, delegation_description, instructions, source_url, workspace_access, browser_access, delegable,
        tools, model_override, revision
    from agents
    where id = $1
    """,
)
