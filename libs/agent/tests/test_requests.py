from __future__ import annotations

from typing import Any

from libs.agent.tests.company import company
from libs.agent.tests.looking import look
from popagent_agent.loop import AgentRun, first_request


async def test_the_first_request_can_be_had_without_a_turn(kit: Any) -> None:
    made = company(kit, kit.says("Done."), own_tools=[look], scout=[], maker=[])
    turn = made.turn
    run = AgentRun(turn.context, "answer-1", turn.history, turn.message, turn.max_steps)

    before = first_request(run, turn.tools, turn.delegates)
    await made.run()

    assert before == turn.model.requests[0]
    assert [tool["function"]["name"] for tool in before.tools] == ["look", "agent-scout", "agent-maker"]
    assert turn.chunks[0]["type"] == "start"  # of the turn itself: composing tells nobody
