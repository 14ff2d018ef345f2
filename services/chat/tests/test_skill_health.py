"""By which rules an enabled skill is judged, and that the check of the agents looks at every one."""

from __future__ import annotations

from typing import Any

import pytest

from popagent_chat.skills.health import findings_of
from popagent_db.pool import Pool
from popagent_kit.clock import now
from popagent_proto.chat.agents import CheckAgents
from popagent_proto.chat.skills import SkillView
from services.chat.tests.running import Door

WELL: dict[str, Any] = {
    "id": "s1",
    "agent_id": "researcher",
    "name": "notes",
    "description": "Write notes.",
    "instructions": "Read references/a.md, then [b](references/c/b.md). All are in references/c.",
    "license": None,
    "compatibility": None,
    "metadata": {},
    "allowed_tools": None,
    "references": {"a.md": "See references/c/b.md.", "c/b.md": "https://example.org/references/x.md"},
    "provenance": None,
    "evolution_managed": True,
    "enabled": True,
    "revision": 0,
    "created_at": now(),
    "updated_at": now(),
}


def found(**changes: Any) -> list[tuple[str, str, str | None]]:
    view = SkillView.model_validate({**WELL, **changes})
    return [(each.code, each.severity, each.field) for each in findings_of(view)]


def test_a_skill_by_the_rules_has_no_finding() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Notes"}, "name"),
        ({"description": " "}, "description"),
        ({"instructions": "\n"}, "instructions"),
        ({"allowed_tools": "a\nb"}, "allowedTools"),
        ({"metadata": {"": "x"}}, "metadata"),
        ({"references": {"../a.md": "x"}, "instructions": "Do."}, "references"),
    ],
)
def test_what_an_edit_would_be_refused_for_is_a_fault_of_that_field(changes: dict[str, Any], field: str) -> None:
    assert found(**changes) == [("skill_off_the_rules", "fault", field)]


def test_a_text_that_it_points_to_and_does_not_have_is_noted_once() -> None:
    [finding] = findings_of(
        SkillView.model_validate(
            {**WELL, "instructions": "references/old.md. Then references/old.md, and references/a.md"}
        )
    )

    assert (finding.code, finding.severity, finding.skill_id) == ("skill_reference_missing", "note", "s1")
    assert "references/old.md" in finding.message


async def test_the_check_of_the_agents_looks_at_every_enabled_skill(chat: object, door: Door, pool: Pool) -> None:
    before = await door.ask(CheckAgents())
    add = (
        "insert into skills (id, agent_id, name, description, instructions, text_bytes, enabled)"
        " values ($1, $2, $1, $3, 'Do.', 10, $4)"
    )
    for row in (
        ("blank", "reviewer", " ", True),
        ("off", "reviewer", " ", False),
        ("well", "researcher", "Do it.", True),
    ):
        await pool.execute(add, *row)

    after = await door.ask(CheckAgents())

    assert before.findings == [each for each in after.findings if each.skill_id is None]
    assert [(each.agent_id, each.skill_id, each.field) for each in after.findings if each.skill_id] == [
        ("reviewer", "blank", "description")
    ]
    assert (after.ok, after.skills) == (False, before.skills + 2)
    assert await door.ask(CheckAgents()) == after
