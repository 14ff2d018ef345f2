"""The company's roster."""

from __future__ import annotations

from itertools import groupby

from popagent_bus import Handlers
from popagent_chat.agents import store
from popagent_chat.agents.store import MemberRow
from popagent_chat.deps import ChatDeps
from popagent_proto.chat.agents import CompanyDepartment, CompanyMember, CompanyView, GetCompany

handlers = Handlers[ChatDeps]()


@handlers.answers(GetCompany)
async def get_company(deps: ChatDeps, query: GetCompany) -> CompanyView:
    """Return the departments in the order of the roster, each with its members."""
    async with deps.pool.acquire() as conn:
        rows = await store.MEMBERS.all(conn)
    departments = [list(members) for _, members in groupby(rows, key=lambda row: row.department_id)]
    return CompanyView(departments=[_department(members) for members in departments])


def _department(members: list[MemberRow]) -> CompanyDepartment:
    first = members[0]
    return CompanyDepartment(
        id=first.department_id,
        name=first.department,
        purpose=first.purpose,
        members=[
            CompanyMember(id=row.id, name=row.name, title=row.title, is_agent=row.is_agent, delegable=row.delegable)
            for row in members
        ],
    )
