"""The embedded model reads how a turn begins before it is asked; no other server is ever asked to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from popagent_chat.turns.context import outlook
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_models.profile import EMBEDDED_MODEL
from popagent_proto.chat.agents import AgentPatch, ListAgents, UpdateAgent
from popagent_testing.model_server import ModelList, ModelServer
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Door

SUPERVISOR = "orchistrator"


@pytest.fixture
def embedded(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server in the place of the embedded one; nothing else is connected."""
    for name in ("POPAGENT_MODEL_URL", "POPAGENT_MODEL"):
        monkeypatch.delenv(name)
    with ModelServer() as server:
        server.models = ModelList(ids=(EMBEDDED_MODEL,))
        server.reads_ahead = True
        monkeypatch.setenv("POPAGENT_LOCAL_MODEL_URL", server.url)
        yield server


def readings(server: ModelServer) -> list[dict[str, Any]]:
    return [entry.body for entry in list(server.log) if entry.path.endswith("/warm-up")]


async def edit(door: Door, **changes: Any) -> None:
    [agent] = [agent for agent in (await door.ask(ListAgents())).items if agent.id == SUPERVISOR]
    body = AgentPatch(revision=agent.revision, **changes)
    await door.ask(UpdateAgent(command_id=new_id(), agent_id=SUPERVISOR, body=body))


async def test_what_is_read_ahead_is_how_the_next_turn_begins(
    embedded: ModelServer, start: StartChat, door: Door, pool: Pool
) -> None:
    used = await pool.fetchval("select count(*) from model_usage")
    await start()
    await embedded.until(lambda server: len(readings(server)) == 1)
    before = await pool.fetchval("select count(*) from model_usage")
    await door.say("What is the word of the day?", new_id())

    [ahead], [asked] = readings(embedded), [request.body for request in embedded.requests]
    assert ahead["tools"] == asked["tools"]
    assert ahead["messages"][0] == asked["messages"][0]
    assert asked["messages"][1]["content"].startswith(ahead["messages"][1]["content"])
    assert before == used


async def test_it_is_read_again_when_it_has_changed_and_only_then(
    embedded: ModelServer, start: StartChat, door: Door
) -> None:
    await start()
    await embedded.until(lambda server: len(readings(server)) == 1)
    await edit(door, instructions="Be kind.")
    await embedded.until(lambda server: len(readings(server)) == 2)
    await edit(door, source_url="https://example.org/profile")
    await edit(door, instructions="Be very kind.")
    await embedded.until(lambda server: len(readings(server)) == 3)

    texts = [reading["messages"][0]["content"] for reading in readings(embedded)]
    assert len(set(texts)) == 3
    assert texts[2].startswith("Be very kind.")


async def test_a_connected_server_is_never_asked_to_read_ahead(
    model: ModelServer, start: StartChat, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as beside:
        beside.models = ModelList(ids=(EMBEDDED_MODEL,))
        model.reads_ahead = beside.reads_ahead = True
        monkeypatch.setenv("POPAGENT_LOCAL_MODEL_URL", beside.url)
        chat = await start()
        next_turn = await outlook(chat.deps)
        await edit(door, instructions="Be connected.")
        await door.say("Hello?", new_id())

        assert next_turn is None
        assert [readings(server) for server in (model, beside)] == [[], []]


async def test_a_model_that_reads_nothing_ahead_answers_all_the_same(
    embedded: ModelServer, start: StartChat, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    embedded.reads_ahead = False
    await start()
    await embedded.until(lambda server: len(readings(server)) == 1)

    watched = await door.say("Hello?", new_id())

    assert watched.ending["type"] == "finish"
    assert "nothing was read ahead" in caplog.text
