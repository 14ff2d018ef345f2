"""Rows of agents and of the company; an agent's is read at the start of every run."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from popagent_db.query import Query
from popagent_proto.chat.agents import AgentView

GET: Final = Query(
    AgentView,
    """
    select id, name, delegation_description, instructions, source_url, workspace_access, browser_access, delegable,
        tools, model_override, override_is_seeded, revision, updated_at
    from agents
    where id = $1
    """,
)

LOCK: Final = Query(AgentView, f"{GET.sql} for update")

LIST: Final = Query(
    AgentView,
    """
    select a.id, a.name, a.delegation_description, a.instructions, a.source_url, a.workspace_access, a.browser_access,
        a.delegable, a.tools, a.model_override, a.override_is_seeded, a.revision, a.updated_at
    from agents a
    left join company_members m on m.id = a.id
    left join company_departments d on d.id = m.department_id
    order by d.position, m.position, a.id
    """,
)

UPDATE: Final = Query(
    AgentView,
    """
    update agents
    set name = $2, delegation_description = $3, instructions = $4, source_url = $5, workspace_access = $6,
        browser_access = $7, delegable = $8, tools = $9, model_override = $10, override_is_seeded = $11,
        revision = revision + 1, updated_at = clock_timestamp()
    where id = $1
    returning id, name, delegation_description, instructions, source_url, workspace_access, browser_access, delegable,
        tools, model_override, override_is_seeded, revision, updated_at
    """,
)


# Whom the agent $1 can give work to, in the order of the company.
DELEGABLE: Final = Query(
    AgentView,
    LIST.sql.replace("order by", "where a.delegable and a.id <> $1\n    order by"),
)


class MemberRow(BaseModel):
    """A member of the company with its department, and what its profile says if it is an agent."""

    department_id: str
    department: str
    purpose: str
    id: str
    name: str
    title: str
    is_agent: bool
    delegable: bool


MEMBERS: Final = Query(
    MemberRow,
    """
    select d.id as department_id, d.name as department, d.purpose, m.id, coalesce(a.name, m.name) as name, m.title,
        a.id is not null as is_agent, coalesce(a.delegable, false) as delegable
    from company_members m
    join company_departments d on d.id = m.department_id
    left join agents a on a.id = m.id
    order by d.position, m.position
    """,
)
