"""Skills over HTTP: what is asked of their owner, what a bad body is refused with, what stands beside a conflict."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from popagent_kit.clock import now
from popagent_kit.errors import RevisionConflictError
from popagent_proto.chat import skills
from popagent_proto.chat.sessions import DeletedView

from .conftest import Owner

PATH = "/api/agents/researcher/skills"
SKILL = skills.SkillView(
    id="s1",
    agent_id="researcher",
    name="notes",
    description="Write notes.",
    instructions="Write.",
    license=None,
    compatibility=None,
    metadata={"version": "1"},
    allowed_tools=None,
    references={"a.md": "A"},
    provenance=None,
    evolution_managed=True,
    enabled=True,
    revision=2,
    created_at=now(),
    updated_at=now(),
)
NEW = {"name": "notes", "description": "Write notes.", "instructions": "Write."}


async def test_skills_are_listed_page_by_page_with_what_their_owner_told(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(skills.ListSkills, skills.SkillList(items=[SKILL], next_cursor="notes"))

    answer = await http.get(PATH, params={"cursor": "a", "limit": 1})

    asked = chat.last()
    assert (asked.agent_id, asked.cursor, asked.limit) == ("researcher", "a", 1)
    assert answer.json() == {"items": [SKILL.wire()], "nextCursor": "notes"}
    assert answer.json()["items"][0]["evolutionManaged"] is True


async def test_a_new_skill_and_an_edit_carry_what_the_client_sent(http: httpx2.AsyncClient, chat: Owner) -> None:
    for each in (skills.CreateSkill, skills.UpdateSkill):
        chat.answer(each, SKILL)
    chat.answer(skills.DeleteSkill, DeletedView(id="s1"))

    made = await http.post(PATH, json={**NEW, "references": {"a.md": "A"}}, headers={"idempotency-key": "once"})
    created = chat.last()
    edited = await http.patch(f"{PATH}/s1", json={"revision": 2, "license": None, "enabled": False})
    updated = chat.last()
    gone = await http.delete(f"{PATH}/s1")
    deleted = chat.last()

    assert (made.status_code, made.json(), edited.json(), gone.json()) == (
        201,
        SKILL.wire(),
        SKILL.wire(),
        {"id": "s1", "deleted": True},
    )
    assert (created.agent_id, created.command_id, created.fields.references) == ("researcher", "once", {"a.md": "A"})
    assert (updated.agent_id, updated.skill_id) == ("researcher", "s1")
    assert updated.body.model_fields_set == {"revision", "license", "enabled"}
    assert (deleted.agent_id, deleted.skill_id) == ("researcher", "s1")


async def test_an_old_revision_is_answered_with_the_stored_skill(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(skills.UpdateSkill, RevisionConflictError(extra={"skill": SKILL.wire()}))

    answer = await http.patch(f"{PATH}/s1", json={"revision": 1, "enabled": False})

    assert (answer.status_code, answer.json()["skill"]) == (409, SKILL.wire())


@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({"name": "No Name"}, "name"),
        ({"description": " "}, "description"),
        ({"references": {"../x": "a"}}, "references"),
        ({"references": {"a": "\0"}}, "references"),
        ({"evolutionManaged": False}, "evolutionManaged"),
        ({"enabled": 1}, "enabled"),
    ],
)
async def test_a_bad_field_is_refused_at_the_door_by_its_name(
    http: httpx2.AsyncClient, chat: Owner, odd: dict[str, Any], field: str
) -> None:
    answer = await http.post(PATH, json={**NEW, **odd})

    assert answer.status_code == 422
    assert answer.json()["field"].partition(".")[0] == field
    assert not chat.asked


async def test_ids_that_cannot_be_are_not_found(http: httpx2.AsyncClient, chat: Owner) -> None:
    answers = [await http.get("/api/agents/a.b/skills"), await http.delete(f"{PATH}/a%2A")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert not chat.asked
