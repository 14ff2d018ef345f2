"""Turns that ask how the company is doing: the owners are asked over the bus, the orchestrator alone has the tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from popagent_db.migrate import migrations_folder
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_models.profile import EMBEDDED_MODEL
from popagent_proto.chat.agents import ListAgents
from popagent_proto.scheduler import CreateSchedule, ScheduleFields
from popagent_proto.task_runner.tasks import CreateTask, CreateTaskBody
from popagent_testing.model_server import ModelList, ModelServer, Reply, ScriptedCall
from popagent_testing.servers import NatsServer
from popagent_testing.task_running import start_runner
from services.chat.tests.running import Chat, Door, Watched
from services.scheduler.tests.running import start_scheduler

STATUS = ScriptedCall("companyStatus", "{}")


@pytest.fixture
async def others(suite_nats: NatsServer, service_database: Callable[[str], str]) -> AsyncIterator[None]:
    """A task-runner that runs nothing, and a scheduler."""
    async with AsyncExitStack() as closing:
        runner = await start_runner(service_database("task-runner"), suite_nats.url, works=False)
        closing.push_async_callback(runner.stop)
        await start_scheduler(service_database("scheduler"), suite_nats.url, closing)
        yield


def output(turn: Watched) -> str:
    [part] = [part for part in turn.message["parts"] if part["type"] == "tool-companyStatus"]
    return str(part.get("output") or part.get("errorText"))


async def test_a_turn_is_told_of_tasks_schedules_and_workspaces(
    chat: Chat, door: Door, model: ModelServer, others: None
) -> None:
    await door.ask(CreateTask(command_id="counting", body=CreateTaskBody(prompt="Count the herons.")))
    fields = ScheduleFields(name="Nightly", prompt="Count.", cron="@daily", enabled=False)
    await door.ask(CreateSchedule(command_id=new_id(), fields=fields))
    model.script(Reply(tool_calls=(STATUS,)), Reply(text="All is well."))

    turn = await door.say("How are you doing?", new_id())

    assert turn.text == "All is well."
    assert "- queued: “Count the herons.” (task counting in home)" in output(turn)
    assert "- schedule is paused: “Nightly”" in output(turn)
    assert "“Default workspace” (default), folder default, the default one" in output(turn)


async def test_owners_that_are_away_cost_their_part_and_not_the_turn(
    chat: Chat, door: Door, model: ModelServer
) -> None:
    model.script(Reply(tool_calls=(STATUS,)), Reply(text="I could not ask all."))

    turn = await door.say("How are you doing?", new_id())

    assert turn.text == "I could not ask all."
    assert "Schedules: cannot be read now." in output(turn)
    assert "Workspaces: 1\n" in output(turn)


async def test_the_orchestrator_has_it_and_knows_who_posts_and_a_profile_that_was_edited_stays_as_it_is(
    chat: Chat, door: Door, pool: Pool
) -> None:
    [later] = (migrations_folder() / "chat").glob("*_company_status.sql")
    seeded = {each.id: each for each in (await door.ask(ListAgents())).items}
    await pool.execute("create table kept_agents as table agents")
    try:
        await pool.execute(
            "update agents set tools = array['read'], instructions = 'Mine.', revision = 1 where id = 'orchistrator'"
        )
        await pool.execute(later.read_text(encoding="utf-8"))
        edited = {each.id: each for each in (await door.ask(ListAgents())).items}["orchistrator"]
    finally:
        await pool.execute("delete from channel_settings")
        await pool.execute("delete from agents")
        await pool.execute("insert into agents table kept_agents")
        await pool.execute("insert into channel_settings (auto_reply, revision) values (false, 0)")
        await pool.execute("drop table kept_agents")

    assert [each for each, agent in seeded.items() if "companyStatus" in agent.tools] == ["orchistrator"]
    assert "is posted to #general by popagent itself" in seeded["orchistrator"].instructions
    assert (edited.tools, edited.instructions) == (["read"], "Mine.")


async def test_the_embedded_model_is_not_given_it(chat: Chat, door: Door, model: ModelServer) -> None:
    model.models = ModelList(ids=("scripted-model", EMBEDDED_MODEL))
    model.script(Reply(text="A large one."), Reply(text="A small one."))

    await door.say("Hello", new_id())
    await door.say("Hello", new_id(), model=EMBEDDED_MODEL)

    large, small = ([tool["function"]["name"] for tool in each.body["tools"]] for each in model.requests)
    assert "companyStatus" in large
    assert "companyStatus" not in small
