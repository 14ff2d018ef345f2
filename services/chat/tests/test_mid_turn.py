"""Everything that a run begins with is changed while it runs: it goes on as it began, and the next one has it all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.agents import AgentPatch, UpdateAgent
from popagent_proto.chat.hooks import CreateHook, HookFields
from popagent_proto.chat.settings import AgentRuntimePatch, PatchAgentRuntime
from popagent_testing.model_replies import Reply, call
from popagent_testing.model_server import ModelList, ModelServer
from services.chat.tests.conftest import StartChat
from services.chat.tests.hook_server import HookServer
from services.chat.tests.running import Chat, Door

ASK = call("agent-researcher", prompt="Which word is it?")
LOOK = call("read", path="README.md")
AGAIN = call("read", path="README.md", line=1)


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with HookServer() as running:
        yield running


@pytest.fixture(autouse=True)
async def chat(server: HookServer, start: StartChat) -> Chat:
    return await start(hook_origins=server.origin)


async def change_everything(door: Door, server: HookServer) -> None:
    """Change the specialist, the settings of all runs, and who is asked before a call."""
    body = AgentPatch.model_validate(
        {"revision": 0, "instructions": "Be a heron.", "tools": ["read"], "modelOverride": "quick-model"}
    )
    await door.ask(UpdateAgent(command_id=new_id(), agent_id="researcher", body=body))
    settings = AgentRuntimePatch.model_validate({"specialistMaxSteps": 1, "delegationFailureText": "It flew away."})
    await door.ask(PatchAgentRuntime(command_id=new_id(), body=settings))
    fields = HookFields.model_validate({"name": "ear", "event": "PreToolUse", "url": f"{server.origin}/ear"})
    await door.ask(CreateHook(command_id=new_id(), fields=fields))


def bodies(model: ModelServer) -> list[dict[str, Any]]:
    return [request.body for request in model.requests]


async def test_what_is_changed_in_mid_turn_is_seen_by_the_next_run_alone(
    door: Door, server: HookServer, model: ModelServer, pool: Pool
) -> None:
    model.script(
        Reply(text="one more word", after=1, hold=True, tool_calls=(ASK,)),
        Reply(tool_calls=(LOOK,)),
        Reply(tool_calls=(AGAIN,)),
        Reply(text="Heron."),
        Reply(text="It is heron."),
    )
    model.models = ModelList(ids=("scripted-model", "quick-model"))
    session = new_id()
    running = await door.start("Which word?", session)
    await model.until(lambda held: held.held == 1)

    await change_everything(door, server)
    model.release()
    first = await running.read()

    asked = bodies(model)
    assert first.text.endswith("It is heron.")
    assert [each["model"] for each in asked] == ["scripted-model"] * 5
    assert "Be a heron." not in orjson.dumps(asked).decode()
    assert server.told == []

    model.script(Reply(tool_calls=(ASK,)), Reply(text=" "), Reply(text=" "), Reply(text="Nothing came."))
    second = await door.say("And now?", session)

    asked = bodies(model)[5:]
    assert second.text == "Nothing came."
    assert asked[1]["messages"][0]["content"].startswith("Be a heron.")
    assert [each["model"] for each in asked] == ["scripted-model", "quick-model", "quick-model", "scripted-model"]
    assert asked[1]["tool_choice"] == "none"  # its one step is kept for the answer
    assert "It flew away." in orjson.dumps(asked[3]["messages"]).decode()
    assert [told.json["subject"] for told in server.told] == ["agent-researcher"]
