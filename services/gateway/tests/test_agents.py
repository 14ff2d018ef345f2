"""Agents and company over HTTP: what is asked of their owner, and what comes back as it was told."""

from __future__ import annotations

import httpx2

from popagent_kit.clock import now
from popagent_kit.errors import InvalidInputError, RevisionConflictError
from popagent_proto.chat import agents

from .conftest import Owner

AGENT = agents.AgentView(
    id="researcher",
    name="Researcher",
    delegation_description="Finds things out.",
    instructions="Look.",
    source_url=None,
    workspace_access="read-only",
    browser_access=False,
    delegable=True,
    tools=["read"],
    model_override="preset",
    override_is_seeded=True,
    revision=3,
    updated_at=now(),
)


async def test_agents_their_health_and_the_company_are_read_from_their_owner(
    http: httpx2.AsyncClient, chat: Owner
) -> None:
    tool = agents.ToolView(name="read", access="read", description="Read a file.")
    finding = agents.AgentFinding(agent_id="researcher", code="unknown_tool", severity="fault", message="M.", fix="F.")
    member = agents.CompanyMember(id="writer", name="Pia", title="Writer", is_agent=False, delegable=False)
    department = agents.CompanyDepartment(id="community", name="Community", purpose="People.", members=[member])
    chat.answer(agents.ListAgents, agents.AgentList(items=[AGENT], tools=[tool]))
    chat.answer(agents.CheckAgents, agents.AgentHealthView(ok=False, agents=1, models_known=True, findings=[finding]))
    chat.answer(agents.GetCompany, agents.CompanyView(departments=[department]))

    listed = await http.get("/api/agents")
    health = await http.get("/api/agents/health")
    company = await http.get("/api/company")

    assert listed.json() == {"items": [AGENT.wire()], "tools": [tool.wire()], "nextCursor": None}
    assert (health.status_code, health.json()["ok"], health.json()["findings"]) == (200, False, [finding.wire()])
    assert company.json() == {"departments": [department.wire()]}


async def test_an_edit_carries_only_what_the_client_sent(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(agents.UpdateAgent, AGENT)

    answer = await http.patch(
        "/api/agents/researcher",
        json={"revision": 3, "modelOverride": None, "tools": ["grep", "read"]},
        headers={"idempotency-key": "once-1"},
    )

    asked = chat.last()
    assert answer.json() == AGENT.wire()
    assert (asked.agent_id, asked.command_id) == ("researcher", "once-1")
    assert asked.body.model_fields_set == {"revision", "model_override", "tools"}
    assert (asked.body.model_override, asked.body.tools) == (None, ["grep", "read"])


async def test_an_old_revision_is_answered_with_the_stored_agent_and_a_bad_tool_with_its_field(
    http: httpx2.AsyncClient, chat: Owner
) -> None:
    chat.answer(agents.UpdateAgent, RevisionConflictError(extra={"agent": AGENT.wire()}))
    stale = await http.patch("/api/agents/researcher", json={"revision": 1, "name": "Scout"})
    chat.answer(agents.UpdateAgent, InvalidInputError("There is no tool “x”.", field="tools"))
    unknown = await http.patch("/api/agents/researcher", json={"revision": 3, "tools": ["x"]})

    assert (stale.status_code, stale.json()["agent"]) == (409, AGENT.wire())
    assert (unknown.status_code, unknown.json()["field"]) == (422, "tools")
