"""Which skills come with popagent, that a user's own is never touched, and that a small model can use them."""

from __future__ import annotations

import pytest

from popagent_chat.skills.health import findings_of
from popagent_chat.skills.store import bytes_of
from popagent_db.migrate import migrations_folder
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_models.profile import EMBEDDED_MODEL, profile_for
from popagent_proto.chat.agents import ListAgents
from popagent_proto.chat.skills import ListSkills, SkillFields, SkillPatch, SkillView, UpdateSkill
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_tools.workspace import CHARACTERS_PER_TOKEN, NOTE_TOKENS
from services.chat.tests.running import Door

pytestmark = pytest.mark.usefixtures("chat")

NAME = "codebase-investigation"
SEED = (migrations_folder() / "chat" / "0025_codebase_investigation.sql").read_text(encoding="utf-8")


async def seeded(door: Door) -> list[SkillView]:
    agents = (await door.ask(ListAgents())).items
    return [skill for agent in agents for skill in (await door.ask(ListSkills(agent_id=agent.id))).items]


async def test_the_researcher_alone_comes_with_a_skill_and_it_is_by_the_rules(door: Door, pool: Pool) -> None:
    [skill] = await seeded(door)

    assert (skill.agent_id, skill.name, skill.provenance) == ("researcher", NAME, "popagent")
    assert (skill.enabled, skill.evolution_managed, skill.revision) == (True, False, 0)
    assert findings_of(skill) == []
    fields = SkillFields.model_validate({name: getattr(skill, name) for name in SkillFields.model_fields}, by_name=True)
    assert await pool.fetchval("select text_bytes from skills where id = $1", skill.id) == bytes_of(fields)


async def test_it_asks_the_index_first_and_works_without_one(door: Door) -> None:
    [skill] = await seeded(door)
    text = skill.instructions

    for tool in ("codeContext", "symbolContext", "changeImpact"):
        assert text.index(tool) < text.index("grep") < text.index("Read only to confirm")
    assert "If they are not, or the index is not ready, grep" in text


async def test_a_small_model_reads_it_whole(door: Door) -> None:
    [skill] = await seeded(door)

    tokens = profile_for(EMBEDDED_MODEL).tool_output_tokens - NOTE_TOKENS
    assert len(skill.instructions) <= tokens * CHARACTERS_PER_TOKEN


async def test_the_seed_keeps_what_a_user_has_and_brings_nothing_where_there_is_no_researcher(
    door: Door, pool: Pool
) -> None:
    [skill] = await seeded(door)
    body = SkillPatch(revision=0, instructions="Mine.", enabled=False)
    mine = await door.ask(UpdateSkill(command_id=new_id(), agent_id="researcher", skill_id=skill.id, body=body))

    await pool.execute(SEED)
    kept = await seeded(door)
    await pool.execute("delete from skills")
    await pool.execute(SEED)
    again = await seeded(door)
    await pool.execute("update skills set id = 'own', instructions = 'Own.'")
    await pool.execute(SEED)
    own = await seeded(door)
    async with pool.acquire() as conn:
        undone = conn.transaction()
        await undone.start()
        await conn.execute("delete from agents where id = 'researcher'")
        await conn.execute(SEED)
        nothing = await conn.fetchval("select count(*) from skills")
        await undone.rollback()

    assert kept == [mine]
    assert [each.instructions for each in again] == [skill.instructions]
    assert [(each.id, each.instructions) for each in own] == [("own", "Own.")]
    assert nothing == 0


async def test_a_researcher_that_is_asked_opens_it_and_goes_on_with_its_own_tools(
    door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("delete from skills where agent_id = 'researcher'")
    await pool.execute(SEED)
    model.script(
        Reply(tool_calls=(ScriptedCall("agent-researcher", '{"prompt":"Where is the heron?"}'),)),
        Reply(tool_calls=(ScriptedCall("skill", f'{{"name":"{NAME}"}}'),)),
        Reply(tool_calls=(ScriptedCall("grep", '{"pattern":"heron"}'),)),
        Reply(text="README.md:1."),
        Reply(text="It is in README.md."),
    )

    turn = await door.say("Where is the heron?", new_id())

    assert turn.text == "It is in README.md."
    results = [each["content"] for each in model.requests[3].body["messages"] if each["role"] == "tool"]
    assert results[0].startswith("Answer from the code, with a place for every finding.")
    assert "The word of the day is heron." in results[1]
