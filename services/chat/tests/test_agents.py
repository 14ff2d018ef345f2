"""Profiles: seeded once, listed, edited field by field by one editor at a time, used by the next run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import ValidationError

from popagent_db.migrate import migrate, migrations_folder
from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.agents import (
    AgentPatch,
    AgentView,
    CheckAgents,
    GetCompany,
    ListAgents,
    UpdateAgent,
)
from popagent_testing.model_server import ModelList, ModelServer, Reply
from popagent_tools.catalogue import CATALOGUE
from services.chat.tests.running import Door, refusal

pytestmark = pytest.mark.usefixtures("chat")

ROLES = [
    "orchistrator",
    "researcher",
    "implementer",
    "reviewer",
    "build-maintainer",
    "build-release-manager",
    "community-steward",
]
PRESET = "cx/gpt-5.3-codex-spark"


@pytest.fixture(autouse=True)
async def as_seeded(pool: Pool) -> AsyncIterator[None]:
    """Each test begins with the profiles as the migrations left them."""
    await pool.execute("create table if not exists kept_agents as table agents")
    yield
    await pool.execute("delete from agents")
    await pool.execute("insert into agents table kept_agents")


async def agent(door: Door, agent_id: str) -> AgentView:
    items: list[AgentView] = (await door.ask(ListAgents())).items
    return next(each for each in items if each.id == agent_id)


async def edit(door: Door, agent_id: str, revision: int | None = None, **fields: Any) -> AgentView:
    if revision is None:
        revision = (await agent(door, agent_id)).revision
    body = AgentPatch.model_validate({"revision": revision, **fields})
    view: AgentView = await door.ask(UpdateAgent(command_id=new_id(), agent_id=agent_id, body=body))
    return view


async def test_the_roles_are_there_in_the_order_of_the_roster_with_all_that_they_need(door: Door) -> None:
    listed = await door.ask(ListAgents())

    assert [each.id for each in listed.items] == ROLES
    assert {each.id for each in listed.items if not each.delegable} == {"orchistrator"}
    writing = {each.id for each in listed.items if each.workspace_access == "read-write"}
    assert writing == {"orchistrator", "implementer"}
    assert {each.id: each.model_override for each in listed.items if each.model_override} == {
        "researcher": PRESET,
        "reviewer": PRESET,
    }
    first = {each.id: tuple(each.tools[:4]) for each in listed.items}
    assert first.pop("implementer") == ("read", "edit", "write", "shell")
    assert set(first.values()) == {("read", "list", "grep", "stat")}
    assert {each.id for each in listed.items if "shell" in each.tools} == {"implementer"}
    of_git = {each.id: [tool for tool in each.tools if tool.startswith("git")] for each in listed.items}
    assert of_git["community-steward"] == []
    assert of_git["reviewer"] == of_git["researcher"] == ["gitStatus", "gitDiff", "gitLog", "gitShow"]
    assert of_git["implementer"] == of_git["orchistrator"] == ["gitStatus", "gitDiff"]
    assert {(each.revision, each.browser_access) for each in listed.items} == {(0, False)}
    assert [tool.name for tool in listed.tools] == list(CATALOGUE)


async def test_what_is_seeded_is_within_the_bounds_of_an_edit(door: Door) -> None:
    for each in (await door.ask(ListAgents())).items:
        AgentPatch.model_validate({name: getattr(each, name) for name in AgentPatch.model_fields})


async def test_the_seed_neither_overwrites_an_edited_profile_nor_brings_back_a_deleted_one(
    door: Door, pool: Pool, dsn: str
) -> None:
    await edit(door, "reviewer", instructions="Mine.")
    await pool.execute("delete from agents where id = 'implementer'")

    await migrate(dsn, "chat")

    left = (await door.ask(ListAgents())).items
    assert "implementer" not in [each.id for each in left]
    assert (await agent(door, "reviewer")).instructions == "Mine."


async def test_guidance_that_comes_later_reaches_the_profiles_that_nobody_has_edited(
    door: Door, pool: Pool, dsn: str
) -> None:
    files = [migrations_folder() / "chat" / name for name in ("0020_specialists_look_first.sql", "0029_letters.sql")]
    seeded = {each.id: each.instructions for each in (await door.ask(ListAgents())).items if each.id != "orchistrator"}
    await edit(door, "reviewer", instructions="Mine.")
    await edit(door, "implementer", instructions="How you work:\n- Mine.")

    for later in files:
        await pool.execute(later.read_text(encoding="utf-8"))

    assert len([text for text in seeded.values() if "Never guess a path" in text or "Never guess what" in text]) == 6
    assert len([text for text in seeded.values() if "agentCommunication" in text]) == 6
    assert (await agent(door, "reviewer")).instructions == "Mine."
    assert (await agent(door, "implementer")).instructions == "How you work:\n- Mine."
    assert (await agent(door, "researcher")).instructions == seeded["researcher"]


async def test_an_edit_changes_what_it_names_and_tells_of_it(door: Door, pool: Pool) -> None:
    before = await agent(door, "researcher")

    after = await edit(
        door,
        "researcher",
        name="Scout",
        delegationDescription="Looks around.",
        instructions="Look.\nThen tell.",
        sourceUrl="https://example.org/guide",
        workspaceAccess="none",
        browserAccess=True,
        delegable=False,
        tools=["stat", "read"],
        modelOverride="scripted-model",
    )

    assert (after.name, after.delegation_description, after.instructions) == (
        "Scout",
        "Looks around.",
        "Look.\nThen tell.",
    )
    assert (after.source_url, after.workspace_access) == ("https://example.org/guide", "none")
    assert (after.browser_access, after.delegable, after.tools) == (True, False, ["stat", "read"])
    assert (after.model_override, after.override_is_seeded) == ("scripted-model", False)
    assert after.revision == before.revision + 1
    assert await agent(door, "researcher") == after
    told = await pool.fetchval(
        "select payload::jsonb->>'changed' from outbox where aggregate_id = 'researcher' order by position desc limit 1"
    )
    assert "delegationDescription" in told
    assert "overrideIsSeeded" not in told


async def test_what_is_sent_as_it_is_stored_is_no_change(door: Door, pool: Pool) -> None:
    await pool.execute("update agents set tools = '{read,levitate}' where id = 'reviewer'")
    before = await agent(door, "reviewer")

    same = await edit(door, "reviewer", name=before.name, tools=before.tools, modelOverride=PRESET)
    other = await edit(door, "reviewer", name="Judge", tools=before.tools, modelOverride=PRESET)

    assert same == before
    assert (other.name, other.override_is_seeded, other.revision) == ("Judge", True, before.revision + 1)


async def test_of_two_editors_one_is_refused_with_what_the_other_saved(door: Door) -> None:
    seen = await agent(door, "implementer")

    answers = await asyncio.gather(
        edit(door, "implementer", seen.revision, name="One"),
        edit(door, "implementer", seen.revision, instructions="Two."),
        return_exceptions=True,
    )

    [saved] = [each for each in answers if isinstance(each, AgentView)]
    [error] = [each for each in answers if isinstance(each, AppError)]
    assert (error.http_status, error.code) == (409, "revision_conflict")
    assert AgentView.model_validate(error.extra["agent"]) == saved
    stored = await agent(door, "implementer")
    assert stored == saved
    assert (stored.name == "One") != (stored.instructions == "Two.")


async def test_many_editors_who_try_again_lose_no_edit(door: Door) -> None:
    fields: list[dict[str, Any]] = [
        {"name": "Many"},
        {"delegationDescription": "Many."},
        {"instructions": "Many."},
        {"tools": ["read"]},
        {"browserAccess": True},
    ]

    async def until_saved(changes: dict[str, Any]) -> None:
        while True:
            try:
                await edit(door, "implementer", **changes)
            except AppError as error:
                assert error.code == "revision_conflict"  # noqa: PT017
            else:
                return

    await asyncio.gather(*(until_saved(changes) for changes in fields))

    stored = await agent(door, "implementer")
    assert stored.revision == len(fields)
    assert {name: stored.wire()[name] for changes in fields for name in changes} == {
        name: value for changes in fields for name, value in changes.items()
    }


@pytest.mark.parametrize(
    ("fields", "field", "word"),
    [
        ({"tools": ["read", "levitate"]}, "tools", "levitate"),
        ({"modelOverride": "not-offered"}, "modelOverride", "not-offered"),
        ({"modelOverride": "a b"}, "modelOverride", "blanks"),
        ({"name": None}, "name", "null"),
        ({"tools": None}, "tools", "null"),
        ({"workspaceAccess": None}, "workspaceAccess", "null"),
    ],
)
async def test_what_cannot_be_used_is_refused_by_its_field_and_nothing_is_changed(
    fields: dict[str, Any], field: str, word: str, door: Door
) -> None:
    before = await agent(door, "reviewer")

    error = await refusal(edit(door, "reviewer", instructions="Other.", **fields))

    assert (error.http_status, error.field) == (422, field)
    assert word in error.message
    assert await agent(door, "reviewer") == before


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "  "},
        {"name": "two\nlines"},
        {"name": "x" * 81},
        {"delegationDescription": "\n"},
        {"delegationDescription": "x" * 1_001},
        {"instructions": ""},
        {"instructions": " \n "},
        {"instructions": "a\x00b"},
        {"instructions": "x" * 20_001},
        {"sourceUrl": "file:///etc/passwd"},
        {"sourceUrl": "https://"},
        {"sourceUrl": "https://a b"},
        {"sourceUrl": "http://[a"},
        {"workspaceAccess": "all"},
        {"browserAccess": "yes please"},
        {"tools": ["read", "read"]},
        {"tools": [""]},
        {"tools": [f"t{number}" for number in range(65)]},
        {"modelOverride": ""},
        {"modelOverride": "x" * 201},
        {"skills": []},
        {"id": "other"},
    ],
)
def test_a_shape_that_no_profile_has_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        AgentPatch.model_validate({"revision": 0, **fields})

    assert [error["loc"][0] for error in refused.value.errors()] == [*fields]


async def test_the_orchestrator_cannot_be_delegated_to_and_an_unknown_agent_is_not_found(door: Door) -> None:
    delegable = await refusal(edit(door, "orchistrator", delegable=True))
    unknown = await refusal(edit(door, "nobody", 0, name="X"))

    assert (delegable.http_status, delegable.field) == (422, "delegable")
    assert (unknown.http_status, unknown.code) == (404, "not_found")


async def test_an_edit_between_two_turns_is_used_by_the_second_and_not_by_the_one_that_runs(
    door: Door, model: ModelServer
) -> None:
    model.script(Reply(text="one more word", after=1, hold=True), Reply(text="two"))
    session = new_id()
    first = await door.start("hello", session)
    await model.until(lambda server: server.held == 1)
    seen = await agent(door, "orchistrator")

    await edit(door, "orchistrator", instructions="Speak like a heron.", tools=["stat"], modelOverride="scripted-model")
    model.release()
    await first.read()
    await door.say("again", session)

    before, after = model.requests[0].body, model.requests[-1].body
    assert seen.instructions in before["messages"][0]["content"]
    assert after["messages"][0]["content"].startswith("Speak like a heron.")
    offered = [{each["function"]["name"] for each in request["tools"]} & set(CATALOGUE) for request in (before, after)]
    assert offered == [set(seen.tools), {"stat"}]


async def test_a_preset_model_that_is_not_offered_is_inherited_also_after_another_field_was_edited(
    door: Door, pool: Pool, model: ModelServer
) -> None:
    model.models = ModelList(ids=("scripted-model", "other-model"))
    await pool.execute(
        "update agents set model_override = $1, override_is_seeded = true where id = 'orchistrator'", PRESET
    )
    await edit(door, "orchistrator", name="Edited")

    inherited = await door.say("hello", new_id(), model="other-model")
    await edit(door, "orchistrator", modelOverride="scripted-model")
    chosen = await door.say("hello", new_id(), model="other-model")

    assert inherited.message["metadata"]["model"] == "other-model"
    assert chosen.message["metadata"]["model"] == "scripted-model"


async def test_a_new_installation_is_well_and_says_which_preset_models_are_passed_over(
    door: Door, model: ModelServer
) -> None:
    model.models = ModelList(ids=("scripted-model",))

    health = await door.ask(CheckAgents())

    assert (health.ok, health.agents, health.models_known) == (True, 7, True)
    assert [(each.agent_id, each.code, each.severity) for each in health.findings] == [
        ("researcher", "model_inherited", "note"),
        ("reviewer", "model_inherited", "note"),
    ]


async def test_faults_that_came_into_the_rows_from_outside_are_all_named(
    door: Door, pool: Pool, model: ModelServer
) -> None:
    model.models = ModelList(ids=("scripted-model", PRESET))
    await pool.execute("update agents set tools = '{read,read,levitate}', name = ' ' where id = 'reviewer'")
    await pool.execute("update agents set model_override = 'gone' where id = 'implementer'")
    await pool.execute("delete from agents where id = 'orchistrator'")

    health = await door.ask(CheckAgents())
    again = await door.ask(CheckAgents())

    assert not health.ok
    assert [(each.agent_id, each.code) for each in health.findings] == [
        ("orchistrator", "orchestrator_missing"),
        ("implementer", "model_not_offered"),
        ("reviewer", "empty_text"),
        ("reviewer", "duplicate_tool"),
        ("reviewer", "unknown_tool"),
    ]
    assert again == health


async def test_a_silent_model_server_leaves_models_unchecked_and_the_rest_checked(
    door: Door, pool: Pool, model: ModelServer
) -> None:
    model.models = ModelList(status=500)
    await pool.execute("update agents set tools = '{levitate}' where id = 'reviewer'")

    health = await door.ask(CheckAgents(), timeout_s=10)

    assert (health.ok, health.models_known) == (False, False)
    assert [each.code for each in health.findings] == ["unknown_tool"]


async def test_the_company_shows_agents_under_their_own_name_and_the_others_as_identities(
    door: Door, pool: Pool
) -> None:
    await edit(door, "researcher", name="Scout", delegable=False)
    await pool.execute("delete from agents where id = 'community-steward'")

    departments = (await door.ask(GetCompany())).departments

    members = {member.id: member for department in departments for member in department.members}
    assert [department.id for department in departments] == [
        *("direction", "research", "engineering", "quality", "build", "community", "operations")
    ]
    assert {name for name, member in members.items() if member.is_agent} == set(ROLES) - {"community-steward"}
    assert {name for name, member in members.items() if member.delegable} == {
        *("implementer", "reviewer", "build-maintainer", "build-release-manager")
    }
    assert (members["researcher"].name, members["community-steward"].name) == ("Scout", "Community steward")
    assert len(members) == sum(len(department.members) for department in departments) > len(ROLES)
