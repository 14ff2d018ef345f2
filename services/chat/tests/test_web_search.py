"""Turns that search the web: the tool is every agent's, an outage costs the search alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest

from popagent_db.migrate import migrations_folder
from popagent_db.pool import Pool
from popagent_kit.errors import ConfigurationError
from popagent_kit.ids import new_id
from popagent_models.profile import EMBEDDED_MODEL
from popagent_proto.chat.agents import ListAgents
from popagent_testing.model_server import ModelList, ModelServer, Reply, ScriptedCall
from popagent_testing.search_server import SearchServer, found, page
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, Watched

SEARCH = ScriptedCall("web-search", '{"query": "heron nest"}')
ASK_RESEARCHER = ScriptedCall("agent-researcher", '{"prompt": "Where do herons nest?"}')


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with SearchServer(answer=found(page(1, content="High in trees."))) as running:
        yield running


@pytest.fixture
async def chat(server: SearchServer, start: StartChat, monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setenv("SEARXNG_URL", server.url)
    return await start()


def output(turn: Watched) -> str:
    [part] = [part for part in turn.message["parts"] if part["type"] == "tool-web-search"]
    return str(part.get("output") or part.get("errorText"))


def offered(model: ModelServer, number: int = 0) -> list[str]:
    return [tool["function"]["name"] for tool in model.requests[number].body["tools"]]


async def test_what_was_found_is_what_the_model_reads_and_no_effect_is_written_down(
    chat: Chat, door: Door, model: ModelServer, server: SearchServer, pool: Pool
) -> None:
    model.script(Reply(tool_calls=(SEARCH,)), Reply(text="High in trees."))

    turn = await door.say("Where do herons nest?", new_id())

    assert (turn.text, turn.ending["type"]) == ("High in trees.", "finish")
    assert "https://example.org/1\nHigh in trees." in output(turn)
    assert output(turn) in [message["content"] for message in model.requests[1].body["messages"]]
    assert server.asked[0]["q"] == "heron nest"
    assert await pool.fetchval("select count(*) from turn_intents where turn_id = $1", turn.view.turn_id) == 0


async def test_a_specialist_searches_as_its_supervisor_does(
    chat: Chat, door: Door, model: ModelServer, server: SearchServer
) -> None:
    model.script(
        Reply(tool_calls=(ASK_RESEARCHER,)), Reply(tool_calls=(SEARCH,)), Reply(text="In trees."), Reply(text="There.")
    )

    turn = await door.say("Where do herons nest?", new_id())

    assert turn.text == "There."
    assert len(server.asked) == 1
    assert "High in trees." in orjson.dumps(model.requests[2].body["messages"]).decode()


async def test_without_a_search_the_turn_goes_on_and_health_stays_ready(
    chat: Chat, door: Door, model: ModelServer, server: SearchServer
) -> None:
    before = await chat.service.health.view()
    server.gives_json = False
    model.script(Reply(tool_calls=(SEARCH,)), Reply(text="I could not search."))

    turn = await door.say("Where do herons nest?", new_id())

    assert (turn.text, turn.ending["type"]) == ("I could not search.", "finish")
    assert "Add json to search.formats in its settings.yml" in output(turn)
    assert "answer without it" in output(turn)
    assert (before.checks["search"], before.details["search"]) == ("ok", f"SearXNG at 127.0.0.1:{server.port}")


async def test_an_instance_that_gives_no_json_is_seen_in_health_and_decides_nothing(
    server: SearchServer, start: StartChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.gives_json = False
    monkeypatch.setenv("SEARXNG_URL", server.url)
    chat = await start()

    chat.service.health.move_to("ok")
    view = await chat.service.health.view()

    assert "Add json to search.formats" in view.checks["search"]
    assert view.ready


async def test_an_address_that_cannot_be_one_stops_the_start(start: StartChat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARXNG_URL", "http://169.254.169.254")

    with pytest.raises(ConfigurationError, match="SEARXNG_URL"):
        await start()


async def test_every_agent_has_it_last_and_a_profile_that_somebody_edited_stays_as_it_is(
    chat: Chat, door: Door, pool: Pool
) -> None:
    [later] = (migrations_folder() / "chat").glob("*_web_search.sql")
    seeded = {each.id: each.tools for each in (await door.ask(ListAgents())).items}
    await pool.execute("create table kept_agents as table agents")
    try:
        await pool.execute("update agents set tools = array['read'], revision = 1 where id = 'reviewer'")
        await pool.execute("update agents set tools = array_remove(tools, 'web-search') where id = 'researcher'")

        await pool.execute(later.read_text(encoding="utf-8"))

        again = {each.id: each.tools for each in (await door.ask(ListAgents())).items}
    finally:
        await pool.execute("delete from agents")
        await pool.execute("insert into agents table kept_agents")
        await pool.execute("drop table kept_agents")
    assert {[name for name in tools if name != "companyStatus"][-1] for tools in seeded.values()} == {"web-search"}
    assert again == seeded | {"reviewer": ["read"]}


async def test_the_embedded_model_is_not_slowed_by_a_tool_more(chat: Chat, door: Door, model: ModelServer) -> None:
    model.models = ModelList(ids=("scripted-model", EMBEDDED_MODEL))
    model.script(Reply(text="A large one."), Reply(text="A small one."))

    await door.say("Hello", new_id())
    await door.say("Hello", new_id(), model=EMBEDDED_MODEL)

    assert "web-search" in offered(model)
    assert "web-search" not in offered(model, -1)
