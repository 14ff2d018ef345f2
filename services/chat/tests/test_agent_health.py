"""The rules by which profiles are judged; what is stored is for test_agents."""

from __future__ import annotations

from typing import Any

import pytest

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_chat.agents.health import findings_of
from popagent_kit.clock import now
from popagent_models.catalogue import UNKNOWN, CatalogueView
from popagent_proto.chat.agents import AgentFinding, AgentView
from popagent_tools.catalogue import CATALOGUE


@tool("replace", access="write")
async def replace_text(run: RunContext, path: str) -> str:
    """Change a file."""
    return path


TOOLS = {**CATALOGUE, "replace": replace_text}
WELL: dict[str, Any] = {
    "id": "researcher",
    "name": "Researcher",
    "delegation_description": "Finds things out.",
    "instructions": "Look.",
    "source_url": None,
    "workspace_access": "read-only",
    "browser_access": False,
    "delegable": True,
    "tools": ["read", "grep"],
    "model_override": None,
    "override_is_seeded": False,
    "revision": 3,
    "updated_at": now(),
}
ORCHESTRATOR = AgentView.model_validate({**WELL, "id": "orchistrator", "delegable": False})
OFFERED = CatalogueView(("qwen",), known=True, unlisted=frozenset({"far-down"}))


def found(models: CatalogueView = OFFERED, **changes: Any) -> list[AgentFinding]:
    agent = AgentView.model_validate({**WELL, **changes})
    return findings_of([ORCHESTRATOR, agent], TOOLS, models)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"name": " "}, "empty_text", "name"),
        ({"delegation_description": ""}, "empty_text", "delegationDescription"),
        ({"instructions": "\n\t"}, "empty_text", "instructions"),
        ({"tools": ["read", "levitate"]}, "unknown_tool", "tools"),
        ({"tools": ["read", "read", "read"]}, "duplicate_tool", "tools"),
        ({"tools": ["replace"]}, "tool_without_access", "tools"),
        ({"tools": ["replace"], "workspace_access": "none"}, "tool_without_access", "tools"),
        ({"model_override": "gone"}, "model_not_offered", "modelOverride"),
        ({"model_override": "a b"}, "bad_model_id", "modelOverride"),
    ],
)
def test_a_fault_is_named_with_its_field_and_what_to_do(changes: dict[str, Any], code: str, field: str) -> None:
    [finding] = found(**changes)

    assert (finding.agent_id, finding.code, finding.field, finding.severity) == ("researcher", code, field, "fault")
    assert finding.message.endswith(".")
    assert finding.fix.endswith(".")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tools": []},
        {"tools": ["replace"], "workspace_access": "read-write"},
        {"model_override": "qwen"},
        {"model_override": "far-down"},
        {"model_override": "gone", "models": UNKNOWN},
        {"model_override": "cx/preset", "override_is_seeded": True, "models": UNKNOWN},
    ],
)
def test_what_can_work_is_no_finding(changes: dict[str, Any]) -> None:
    assert found(**changes) == []


def test_a_preset_model_that_is_not_offered_is_a_note_that_says_what_answers_instead() -> None:
    [finding] = found(model_override="cx/preset", override_is_seeded=True)

    assert (finding.code, finding.severity) == ("model_inherited", "note")
    assert "“cx/preset”" in finding.message


def test_a_company_without_orchestrator_or_without_specialists_is_told() -> None:
    alone = findings_of([ORCHESTRATOR], TOOLS, UNKNOWN)
    kept = found(delegable=False)
    headless = findings_of([AgentView.model_validate(WELL)], TOOLS, UNKNOWN)
    turned = findings_of([ORCHESTRATOR.model_copy(update={"delegable": True})], TOOLS, UNKNOWN)

    assert [(each.code, each.severity) for each in alone] == [("nobody_delegable", "note")]
    assert [each.code for each in kept] == ["nobody_delegable"]
    assert [(each.code, each.severity, each.agent_id) for each in headless] == [
        ("orchestrator_missing", "fault", "orchistrator")
    ]
    assert [each.code for each in turned] == ["nobody_delegable", "orchestrator_delegable"]


def test_findings_come_in_the_order_of_the_agents_and_each_time_the_same() -> None:
    second = AgentView.model_validate({**WELL, "id": "a-later-one", "tools": ["x", "y", "x"], "name": ""})
    first = AgentView.model_validate({**WELL, "tools": ["nothing"]})

    told = findings_of([ORCHESTRATOR, first, second], TOOLS, UNKNOWN)

    assert [(each.agent_id, each.code) for each in told] == [
        ("researcher", "unknown_tool"),
        ("a-later-one", "empty_text"),
        ("a-later-one", "duplicate_tool"),
        ("a-later-one", "unknown_tool"),
        ("a-later-one", "unknown_tool"),
    ]
    assert told == findings_of([ORCHESTRATOR, first, second], TOOLS, UNKNOWN)


def test_a_hostile_name_is_told_in_one_bounded_line() -> None:
    [finding] = found(tools=["a\nb" + "x" * 5_000])

    assert "\n" not in finding.message
    assert len(finding.message) < 200
