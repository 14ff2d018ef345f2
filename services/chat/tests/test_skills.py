"""Skills as a person keeps them: stored once, changed by one at a time, bounded, refused by the field that is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import ValidationError

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat import skills
from popagent_proto.chat.skills import (
    CreateSkill,
    DeleteSkill,
    ListSkills,
    SkillFields,
    SkillList,
    SkillPatch,
    SkillView,
    UpdateSkill,
)
from services.chat.tests.running import Door, refusal

pytestmark = pytest.mark.usefixtures("chat")

AGENT = "implementer"


@pytest.fixture(autouse=True)
async def without_skills(pool: Pool) -> AsyncIterator[None]:
    yield
    await pool.execute("delete from skills where agent_id = $1", AGENT)


def fields(name: str = "release-notes", **more: Any) -> SkillFields:
    given = {"description": "Write release notes.", "instructions": "1. Read the log.\n2. Write.", **more}
    return SkillFields.model_validate({"name": name, **given}, by_alias=True)


async def create(door: Door, name: str = "release-notes", *, agent: str = AGENT, **more: Any) -> SkillView:
    command_id = more.pop("command_id", None) or new_id()
    command = CreateSkill(command_id=command_id, agent_id=agent, fields=fields(name, **more))
    view: SkillView = await door.ask(command)
    return view


async def edit(door: Door, skill: SkillView, revision: int | None = None, **changes: Any) -> SkillView:
    body = SkillPatch.model_validate({"revision": skill.revision if revision is None else revision, **changes})
    command = UpdateSkill(command_id=new_id(), agent_id=skill.agent_id, skill_id=skill.id, body=body)
    view: SkillView = await door.ask(command)
    return view


async def listed(door: Door, agent: str = AGENT, **page: Any) -> SkillList:
    found: SkillList = await door.ask(ListSkills(agent_id=agent, **page))
    return found


async def told(pool: Pool, skill: SkillView) -> list[dict[str, Any]]:
    rows = await pool.fetch(
        "select subject, payload::jsonb as payload from outbox where aggregate_id = $1 order by position", skill.id
    )
    return [{"subject": row["subject"].split(".")[3], **row["payload"]} for row in rows]


async def test_a_skill_is_stored_whole_and_told(door: Door, pool: Pool) -> None:
    whole = {
        "license": "MIT",
        "compatibility": "Needs git.",
        "metadata": {"author": "Ilse", "version": "1.0"},
        "allowedTools": "read grep",
        "references": {"style.md": "Short.", "api/errors.md": "Sätze.\n"},
        "provenance": "https://example.org/skills",
    }

    made = await create(door, command_id="made-once", **whole)
    again = await create(door, command_id="made-once", **whole)

    page = await listed(door)
    assert page.items == [made] == [again]
    assert {name: value for name, value in made.wire().items() if name in whole} == whole
    assert (made.id, made.revision, made.enabled, made.evolution_managed) == ("made-once", 0, True, False)
    [event] = await told(pool, made)
    assert (event["subject"], event["agentId"], event["name"]) == ("skills-changed", AGENT, "release-notes")
    assert "references" in event["changed"]
    assert "Short." not in str(event)


async def test_an_edit_changes_what_it_names_and_what_is_sent_as_stored_is_none(door: Door, pool: Pool) -> None:
    skill = await create(door, license="MIT", references={"a.md": "A"})

    same = await edit(door, skill, name="release-notes", references={"a.md": "A"}, license="MIT")
    edited = await edit(door, skill, name="notes", license=None, references={"b.md": "B"}, enabled=False)

    assert same == skill
    assert (edited.name, edited.license, edited.references, edited.enabled) == ("notes", None, {"b.md": "B"}, False)
    assert (edited.instructions, edited.revision) == (skill.instructions, 1)
    assert (await listed(door)).items == [edited]
    assert [event.get("changed") for event in await told(pool, skill)][1:] == [
        ["enabled", "license", "name", "references"]
    ]


@pytest.mark.parametrize("changes", [{"description": "Write them."}, {"enabled": True}, {"enabled": False}])
async def test_whatever_a_person_saves_of_a_learned_skill_makes_it_their_own(
    door: Door, pool: Pool, changes: dict[str, Any]
) -> None:
    skill = await create(door)
    await pool.execute("update skills set evolution_managed = true where id = $1", skill.id)
    [learned] = (await listed(door)).items

    edited = await edit(door, learned, **changes)

    [*_, event] = await told(pool, skill)
    assert "evolutionManaged" in event["changed"]
    assert (learned.evolution_managed, edited.evolution_managed, edited.revision) == (True, False, 1)
    for shape in (SkillFields, SkillPatch):
        assert not {"evolution_managed", "agent_id", "id"} & set(shape.model_fields)


async def test_of_two_editors_at_once_one_is_shown_what_is_stored(door: Door) -> None:
    skill = await create(door)

    both = await asyncio.gather(
        edit(door, skill, description="First."), edit(door, skill, description="Second."), return_exceptions=True
    )

    [saved] = [each for each in both if isinstance(each, SkillView)]
    [refused] = [each for each in both if isinstance(each, AppError)]
    assert (refused.code, refused.http_status, refused.extra["skill"]) == ("revision_conflict", 409, saved.wire())
    assert (await listed(door)).items == [saved]


async def test_of_two_skills_of_one_name_at_once_one_is_refused_with_the_stored_one(door: Door) -> None:
    both = await asyncio.gather(create(door), create(door), return_exceptions=True)
    other = await create(door, "notes")
    renamed = await refusal(edit(door, other, name="release-notes"))
    elsewhere = await create(door, agent="reviewer")

    [made] = [each for each in both if isinstance(each, SkillView)]
    [refused] = [each for each in both if isinstance(each, AppError)]
    for each in (refused, renamed):
        assert (each.code, each.http_status, each.extra["skill"]) == ("skill_exists", 409, made.wire())
    assert elsewhere.name == made.name
    await door.ask(DeleteSkill(agent_id="reviewer", skill_id=elsewhere.id))


async def test_what_is_not_there_or_is_of_another_agent_is_not_found(door: Door) -> None:
    skill = await create(door, command_id="key-once")
    elsewhere = skill.model_copy(update={"agent_id": "reviewer"})

    refused = [
        await refusal(listed(door, "nobody")),
        await refusal(create(door, agent="nobody")),
        await refusal(edit(door, elsewhere, enabled=False)),
        await refusal(door.ask(DeleteSkill(agent_id="reviewer", skill_id=skill.id))),
        await refusal(door.ask(DeleteSkill(agent_id=AGENT, skill_id="none"))),
    ]

    assert [each.http_status for each in refused] == [404] * 5
    for other in ({"agent": "reviewer"}, {"description": "Another one."}, {"name": "another"}):
        assert (await refusal(create(door, **{"command_id": "key-once", **other}))).code == "key_used"
    assert (await listed(door)).items == [skill]


async def test_a_deleted_skill_is_gone_and_its_name_is_free(door: Door, pool: Pool) -> None:
    skill = await create(door)

    await door.ask(DeleteSkill(agent_id=AGENT, skill_id=skill.id))

    assert (await listed(door)).items == []
    assert [event["subject"] for event in await told(pool, skill)] == ["skills-changed", "skills-deleted"]
    assert (await create(door)).name == skill.name


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "upper case": ({"name": "Release"}, "name"),
    "an underscore": ({"name": "release_notes"}, "name"),
    "two hyphens": ({"name": "release--notes"}, "name"),
    "a hyphen last": ({"name": "release-"}, "name"),
    "a line after the name": ({"name": "release\n"}, "name"),
    "other digits": ({"name": "release-٣"}, "name"),
    "a long name": ({"name": "a" * 65}, "name"),
    "no name": ({"name": ""}, "name"),
    "a blank description": ({"description": " \n"}, "description"),
    "a long description": ({"description": "a" * 1_025}, "description"),
    "a NUL": ({"instructions": "a\0"}, "instructions"),
    "blank instructions": ({"instructions": "\n"}, "instructions"),
    "long instructions": ({"instructions": "a" * 50_001}, "instructions"),
    "a blank licence": ({"license": ""}, "license"),
    "a long compatibility": ({"compatibility": "a" * 501}, "compatibility"),
    "metadata that is no text": ({"metadata": {"version": 1}}, "metadata"),
    "much metadata": ({"metadata": {f"k{n}": "" for n in range(33)}}, "metadata"),
    "a path upwards": ({"references": {"../secrets.md": ""}}, "references"),
    "a path upwards within": ({"references": {"a/../../b.md": ""}}, "references"),
    "an absolute path": ({"references": {"/etc/passwd": ""}}, "references"),
    "a folder": ({"references": {"a/": ""}}, "references"),
    "a dot": ({"references": {"./a.md": ""}}, "references"),
    "a backslash": ({"references": {"..\\a.md": ""}}, "references"),
    "no path": ({"references": {"": ""}}, "references"),
    "a path of two lines": ({"references": {"a\nb.md": ""}}, "references"),
    "a path that hides": ({"references": {"a\u202ecod.md": ""}}, "references"),
    "a long path": ({"references": {"a" * 201: ""}}, "references"),
    "a text that is a folder": ({"references": {"a": "", "a/b.md": ""}}, "references"),
    "a NUL in a text": ({"references": {"a.md": "\0"}}, "references"),
    "a long text": ({"references": {"a.md": "a" * 100_001}}, "references"),
    "many texts": ({"references": {f"{n}.md": "" for n in range(51)}}, "references"),
    "much text": ({"references": {f"{n}.md": "ä" * 90_000 for n in range(3)}}, "references"),
    "a text that is none": ({"references": {"a.md": None}}, "references"),
    "whose it is": ({"evolutionManaged": True}, "evolutionManaged"),
}


@pytest.mark.parametrize(("odd", "field"), ODD.values(), ids=list(ODD))
def test_what_is_off_the_rules_is_refused_by_its_field(odd: dict[str, Any], field: str) -> None:
    for shape, rest in ((SkillFields, fields().wire()), (SkillPatch, {"revision": 0})):
        with pytest.raises(ValidationError) as refused:
            shape.model_validate({**rest, **odd})

        assert {error["loc"][0] for error in refused.value.errors()} == {field}


def test_what_is_just_within_the_rules_is_taken() -> None:
    shown = fields(
        "a" * 64,
        description="a" * 1_024,
        instructions="a" * 50_000,
        references={"a.md": "a" * 100_000, "b/c d/.e.md": "", "b/ü.md": "\r\n"},
    )

    assert shown.name == "a" * 64
    assert [fields(name).name for name in ("a", "7", "pdf-2-text")] == ["a", "7", "pdf-2-text"]


async def test_null_is_only_taken_where_there_may_be_nothing(door: Door) -> None:
    skill = await create(door)

    for name in ("name", "description", "instructions", "metadata", "references", "enabled"):
        assert (await refusal(edit(door, skill, **{name: None}))).field == name


async def test_an_agent_has_so_many_skills_and_no_more(door: Door, pool: Pool) -> None:
    await create(door)
    await pool.execute(
        "insert into skills (id, agent_id, name, description, instructions, text_bytes)"
        " select 's' || n, $1, 's' || n, 'd', 'i', 3 from generate_series(2, $2) n",
        *(AGENT, skills.MOST_SKILLS),
    )

    refused = await refusal(create(door, "one-more"))

    assert (refused.code, refused.http_status) == ("too_many_skills", 409)
    assert len((await listed(door)).items) == skills.MOST_SKILLS


async def test_the_skills_of_an_agent_are_bounded_together_and_pages_by_their_bytes(door: Door) -> None:
    large = {f"{n}.md": "a" * 99_000 for n in range(4)}
    made = [await create(door, f"s{n}", references=large) for n in range(5)]

    refused = await refusal(create(door, "one-more", references=large))
    grown = await refusal(edit(door, await create(door, "small"), references=large))

    assert (refused.code, grown.code, refused.http_status) == ("skills_too_large", "skills_too_large", 409)
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = await listed(door, cursor=cursor)
        assert 0 < len(page.items) < 3
        assert len(page.encode()) < 1_000_000
        seen += [skill.name for skill in page.items]
        cursor, pages = page.next_cursor, pages + 1
    assert seen == sorted([*(skill.name for skill in made), "small"])


async def test_pages_follow_each_other_by_name(door: Door) -> None:
    for name in ("b", "a-b", "a", "ab", "a1"):
        await create(door, name)

    first = await listed(door, limit=3)
    second = await listed(door, limit=3, cursor=first.next_cursor)

    assert [skill.name for skill in [*first.items, *second.items]] == ["a", "a-b", "a1", "ab", "b"]
    assert second.next_cursor is None
    for cursor in ("", "A", "a" * 65, "../x", "a\n"):
        assert (await refusal(listed(door, cursor=cursor))).field == "cursor"
