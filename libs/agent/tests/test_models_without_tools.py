"""A model whose server takes no tools works with them all the same: they are told in words, calls come as text."""

from __future__ import annotations

from typing import Any

from libs.agent.tests.looking import AnswerOf, look, outputs
from popagent_models.client import ModelClient
from popagent_models.endpoint import endpoint
from popagent_testing.model_server import ModelServer, Reply


async def test_a_model_without_tools_looks_and_answers(kit: Any, answer_of: AnswerOf) -> None:
    with ModelServer() as server:
        server.script(
            Reply(status=400, error="registry.ollama.ai/library/gemma3:4b does not support tools"),
            Reply(text='<tool_call>{"name": "look", "arguments": {"at": "the gauge"}}</tool_call>'),
            Reply(text="It stands in the north."),
        )
        turn = kit.turn(tools=[look])
        turn.model = ModelClient(endpoint(server.url))

        result = await turn.run()
        await turn.model.close()

    assert outputs(result) == ["saw the gauge "]
    assert answer_of(result) == "It stands in the north."
    assert "saw the gauge" in server.requests[-1].body["messages"][-1]["content"]
