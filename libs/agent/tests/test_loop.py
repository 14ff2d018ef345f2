"""Steps, their ceiling, and an answer at the end of every turn."""

from __future__ import annotations

from typing import Any

import pytest

from libs.agent.tests.looking import AnswerOf, look, outputs
from popagent_models.events import Usage


async def test_an_answer_without_tools_is_one_step(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.says("Hello there"))

    result = await turn.run()

    assert turn.kinds == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish-step",
        "message-metadata",
        "finish",
    ]
    assert turn.chunks[0] == {"type": "start", "messageId": "answer-1", "messageMetadata": {"turnId": "turn-1"}}
    assert turn.chunks[-1] == {"type": "finish", "finishReason": "stop"}
    assert (answer_of(result), result.steps, result.finish_reason) == ("Hello there", 1, "stop")


async def test_a_tool_result_is_told_to_the_model_and_the_answer_follows(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.calls(("look", {"at": "sky"}), text="Let me look."), kit.says("Blue."), tools=[look])

    result = await turn.run()

    asked = turn.model.requests[1].messages
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "tool"]
    assert asked[2]["content"] == "Let me look."
    assert asked[2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at":"sky"}'}
    assert asked[3]["content"] == "saw sky "
    assert turn.model.requests[0].tools[0]["function"]["name"] == "look"
    assert answer_of(result) == "Let me look.\nBlue."
    assert result.steps == 2


async def test_reasoning_is_a_part_of_its_own_and_never_goes_back_to_the_model(kit: Any) -> None:
    turn = kit.turn(
        [*kit.thinks("hm"), *kit.calls(("look", {"at": "sky"}))], [*kit.thinks("so"), *kit.says("Blue.")], tools=[look]
    )

    result = await turn.run()

    assert [part["text"] for part in result.parts if part["type"] == "reasoning"] == ["hm", "so"]
    assert "hm" not in str(turn.model.requests[1].messages)


async def test_usage_is_summed_over_the_steps(kit: Any) -> None:
    turn = kit.turn(
        kit.calls(("look", {"at": "sky"})),
        kit.says("Blue.", usage=Usage(100, 50, cached_tokens=30, reasoning_tokens=4)),
        tools=[look],
    )

    result = await turn.run()

    assert result.usage == Usage(120, 57, 30, 4)
    metadata = turn.chunks[-2]["messageMetadata"]
    assert metadata["usage"]["inputTokens"] == 120
    assert metadata["model"] == "scripted"


# -- the ceiling and the answer -----------------------------------------------------------------------------------


async def test_the_last_step_is_kept_for_the_answer(kit: Any, answer_of: AnswerOf) -> None:
    look_on = [kit.calls(("look", {"at": str(number)})) for number in range(2)]
    turn = kit.turn(*look_on, kit.says("That is all."), tools=[look], max_steps=3)

    result = await turn.run()

    assert [request.tool_choice for request in turn.model.requests] == ["auto", "auto", "none"]
    assert kit.reminder in turn.model.requests[2].messages[-1]["content"]
    assert turn.model.requests[2].messages[-1]["role"] == "user"
    assert (result.steps, result.budget_exhausted) == (3, True)
    assert answer_of(result) == "That is all."


async def test_parallel_calls_cost_one_step(kit: Any) -> None:
    batch = kit.calls(*(("look", {"at": str(number)}) for number in range(5)))
    turn = kit.turn(batch, kit.says("Done."), tools=[look], max_steps=2)

    result = await turn.run()

    assert result.steps == 2
    assert outputs(result) == [f"saw {number} " for number in range(5)]


async def test_calls_in_the_last_step_are_not_made_and_the_model_is_asked_once_more_without_tools(
    kit: Any, answer_of: AnswerOf
) -> None:
    turn = kit.turn(
        kit.calls(("look", {"at": "a"})),
        kit.calls(("look", {"at": "b"})),
        kit.says("So be it."),
        tools=[look],
        max_steps=2,
    )

    result = await turn.run()

    assert outputs(result) == ["saw a "]
    assert turn.model.requests[2].tools == []
    assert "saw a" in turn.model.requests[2].messages[-1]["content"]
    assert not any("tool_calls" in message for message in turn.model.requests[2].messages)
    assert (answer_of(result), result.steps) == ("So be it.", 2)


@pytest.mark.parametrize("blank", ["", " \n\t", "\u200b", "\ufeff \u2060\u00ad", "\u3164\u2800", "\ufe0f\u0301"])
async def test_a_turn_is_never_blank(kit: Any, answer_of: AnswerOf, blank: str) -> None:
    turn = kit.turn(kit.calls(("look", {"at": "a"}), ("look", {"at": "b"})), kit.says(blank), tools=[look])

    result = await turn.run()

    assert len(turn.model.requests) == 3
    assert "look (2×)" in answer_of(result)
    assert result.finish_reason == "stop"


async def test_a_withheld_answer_says_so_and_is_not_asked_for_again(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.says("", reason="content-filter"))

    result = await turn.run()

    assert len(turn.model.requests) == 1
    assert "content filter" in answer_of(result)
    assert turn.chunks[-1]["finishReason"] == "content-filter"


async def test_an_answer_cut_by_its_length_keeps_its_text_and_its_reason(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.says("A long sto", reason="length"))

    result = await turn.run()

    assert (answer_of(result), result.finish_reason) == ("A long sto", "length")


async def test_a_ceiling_of_one_answers_without_tools(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.says("At once."), tools=[look], max_steps=1)

    result = await turn.run()

    assert turn.model.requests[0].tool_choice == "none"
    assert (answer_of(result), result.budget_exhausted) == ("At once.", False)
