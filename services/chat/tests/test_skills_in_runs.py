"""What a run has of skills: its agent's own, those that are enabled, as they were when it began."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.skills import CreateSkill, DeleteSkill, SkillFields, SkillPatch, SkillView, UpdateSkill
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Chat, Door

SUPERVISOR = "orchistrator"
OPEN = ScriptedCall("skill", '{"name":"greeting"}')
ASK_REVIEWER = ScriptedCall("agent-reviewer", '{"prompt":"Look at it."}')


@pytest.fixture(autouse=True)
async def without_skills(pool: Pool) -> None:
    await pool.execute("delete from skills")


async def create(door: Door, agent: str, name: str, instructions: str, **more: Any) -> SkillView:
    fields = SkillFields(name=name, description=f"What {name} is for.", instructions=instructions, **more)
    view: SkillView = await door.ask(CreateSkill(command_id=new_id(), agent_id=agent, fields=fields))
    return view


async def edit(door: Door, skill: SkillView, **changes: Any) -> SkillView:
    body = SkillPatch(revision=skill.revision, **changes)
    command = UpdateSkill(command_id=new_id(), agent_id=skill.agent_id, skill_id=skill.id, body=body)
    view: SkillView = await door.ask(command)
    return view


def told(model: ModelServer, number: int) -> str:
    """The system text of a request."""
    text: str = model.requests[number].body["messages"][0]["content"]
    return text


def read(model: ModelServer, number: int) -> list[str]:
    """What the tools of the turn have returned so far, as a request tells it."""
    return [each["content"] for each in model.requests[number].body["messages"] if each["role"] == "tool"]


def offered(model: ModelServer, number: int) -> set[str]:
    return {tool["function"]["name"] for tool in model.requests[number].body["tools"]}


SKILL_TOOLS = {"skill", "skill_read", "skill_search"}


async def test_an_agent_opens_a_skill_and_reads_and_searches_its_references(
    chat: Chat, door: Door, model: ModelServer
) -> None:
    await create(
        door, SUPERVISOR, "greeting", "Greet as references/tone.md says.", references={"tone.md": "Like a heron.\n"}
    )
    model.script(
        Reply(tool_calls=(OPEN,)),
        Reply(tool_calls=(ScriptedCall("skill_read", '{"skillName":"greeting","path":"references/tone.md"}'),)),
        Reply(tool_calls=(ScriptedCall("skill_search", '{"query":"heron"}'),)),
        Reply(tool_calls=(ScriptedCall("skill", '{"name":"no-such"}'),)),
        Reply(text="Kraak."),
    )

    turn = await door.say("hello", new_id())

    assert turn.text == "Kraak."
    assert "<skill><name>greeting</name><description>What greeting is for.</description></skill>" in told(model, 0)
    assert "Greet as" not in told(model, 0)
    assert offered(model, 0) >= SKILL_TOOLS
    opened, text, hits, unknown = read(model, 4)
    assert opened.startswith("Greet as references/tone.md says.\n")
    assert "- references/tone.md" in opened
    assert text == "Like a heron."
    assert hits.startswith("[greeting] references/tone.md (lines 1-2) (score: ")
    assert unknown == "There is no skill “no-such”. Your skills: greeting."


async def test_without_an_enabled_skill_a_run_knows_nothing_of_skills(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    skill = await create(door, SUPERVISOR, "greeting", "Greet.", enabled=False)
    await create(door, "implementer", "building", "Build.")
    await pool.execute("update agents set tools = tools || '{skill,skill_read}' where id = $1", SUPERVISOR)

    await door.say("one", new_id())
    enabled = await edit(door, skill, enabled=True)
    await door.say("two", new_id())
    await door.ask(DeleteSkill(agent_id=SUPERVISOR, skill_id=enabled.id))
    await door.say("three", new_id())

    assert ["available_skills" in told(model, number) for number in range(3)] == [False, True, False]
    assert [bool(offered(model, number) & SKILL_TOOLS) for number in range(3)] == [False, True, False]


async def test_a_specialist_has_its_own_skills_and_not_those_of_its_supervisor(
    chat: Chat, door: Door, model: ModelServer
) -> None:
    await create(door, SUPERVISOR, "greeting", "Greet.")
    await create(door, "reviewer", "reviewing", "Look for harm first.")
    model.script(
        Reply(tool_calls=(ASK_REVIEWER,)),
        Reply(tool_calls=(ScriptedCall("skill", '{"name":"reviewing"}'), OPEN)),
        Reply(text="Well."),
        Reply(text="It is well."),
    )

    await door.say("review it", new_id())

    supervisor, specialist = told(model, 0), told(model, 1)
    assert ("greeting" in supervisor, "<name>reviewing" in supervisor) == (True, False)
    assert ("greeting" in specialist, "<name>reviewing" in specialist) == (False, True)
    own, others = read(model, 2)
    assert own == "Look for harm first."
    assert others == "There is no skill “greeting”. Your skills: reviewing."


async def test_what_is_changed_in_mid_turn_is_seen_by_the_next_run_alone(
    chat: Chat, door: Door, model: ModelServer
) -> None:
    skill = await create(door, SUPERVISOR, "greeting", "As it was.")
    gone = await create(door, SUPERVISOR, "parting", "Goodbye.")
    reviewing = await create(door, "reviewer", "reviewing", "As it was.")
    model.script(
        Reply(text="wait here", after=1, hold=True, tool_calls=(OPEN, ASK_REVIEWER)),
        Reply(tool_calls=(ScriptedCall("skill", '{"name":"reviewing"}'),)),
        Reply(text="Well."),
        Reply(tool_calls=(ScriptedCall("skill", '{"name":"parting"}'),)),
        Reply(text="Done."),
        Reply(tool_calls=(OPEN,)),
        Reply(text="Done."),
    )
    session = new_id()
    turn = await door.start("hello", session)
    await model.until(lambda server: server.held == 1)

    await edit(door, skill, instructions="As it is.", description="Another purpose.")
    await edit(door, reviewing, instructions="As it is.")
    await door.ask(DeleteSkill(agent_id=SUPERVISOR, skill_id=gone.id))
    await create(door, SUPERVISOR, "added", "New.")
    model.release()
    await turn.read()
    await door.say("again", session)

    first, second = told(model, 0), told(model, 5)
    assert all(told(model, number) == first for number in (3, 4))
    assert "As it was." in read(model, 4)
    assert "Goodbye." in read(model, 4)
    assert "As it was." in orjson.dumps(model.requests[2].body["messages"]).decode()
    assert ("Another purpose." in second, "parting" in second, "added" in second) == (True, False, True)
    assert "As it is." in read(model, 6)


async def test_texts_are_asked_for_once_and_again_after_a_change(chat: Chat, door: Door, pool: Pool) -> None:
    skill = await create(door, SUPERVISOR, "greeting", "Greet.")
    await door.say("one", new_id())
    [first] = chat.deps.skills._kept.values()
    await door.say("two", new_id())
    [second] = chat.deps.skills._kept.values()

    await edit(door, skill, instructions="Greet well.")
    await door.say("three", new_id())
    [third] = chat.deps.skills._kept.values()
    await edit(door, await edit(door, skill.model_copy(update={"revision": 1}), enabled=False), license="MIT")
    await door.say("four", new_id())

    assert first is second
    assert third.skill.instructions == "Greet well."
    assert not chat.deps.skills._kept
