from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from popagent_agent.loop import TurnResult
from popagent_agent.ports import LeaseLostError
from popagent_agent.run_context import RunContext, WorkspacePolicy
from popagent_agent.toolset import Tool, tool
from popagent_kit.errors import NotFoundError, RateLimitedError
from popagent_models.errors import ContextOverflowError, ModelProviderError, ModelTimeoutError
from popagent_models.events import Finished, TextDelta, ToolCallDelta, ToolCallStart, Usage
from popagent_proto.chat.messages import FAILURE

AnswerOf = Callable[[TurnResult], str]


@tool("look", access="read")
async def look(run: RunContext, at: str, times: int = 1) -> str:
    """Look at something."""
    return f"saw {at} " * times


@tool("change", access="write")
async def change(run: RunContext, at: str) -> str:
    """Change something."""
    return f"changed {at}"


def outputs(result: TurnResult) -> list[str]:
    return [
        part.get("output") or f"error: {part['errorText']}" for part in result.parts if part["type"].startswith("tool-")
    ]


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


@pytest.mark.parametrize("blank", ["", " \n\t"])
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


# -- tool calls ---------------------------------------------------------------------------------------------------


def counting(limit_of: dict[str, int], **options: Any) -> Tool:
    """A tool that notes how many of it ran at once; the first of a batch ends last."""

    @tool("count", access="read", **options)
    async def count(run: RunContext, number: int) -> str:
        limit_of["now"] = limit_of.get("now", 0) + 1
        limit_of["most"] = max(limit_of.get("most", 0), limit_of["now"])
        for _ in range(20 - number):
            await asyncio.sleep(0)
        limit_of["now"] -= 1
        return str(number)

    return count


async def test_calls_run_side_by_side_up_to_the_limit_and_results_keep_the_order_of_the_calls(kit: Any) -> None:
    seen: dict[str, int] = {}
    turn = kit.turn(kit.calls(*(("count", {"number": n}) for n in range(10))), kit.says("ok"), tools=[counting(seen)])

    result = await turn.run()

    assert seen["most"] == kit.settings.concurrent_tool_calls == 4
    assert outputs(result) == [str(number) for number in range(10)]
    told = [message["content"] for message in turn.model.requests[1].messages if message["role"] == "tool"]
    assert told == [str(number) for number in range(10)]


async def test_a_call_that_may_suspend_runs_one_at_a_time_with_its_batch(kit: Any) -> None:
    seen: dict[str, int] = {}
    batch = kit.calls(*(("count", {"number": n}) for n in range(5)))
    turn = kit.turn(batch, kit.says("ok"), tools=[counting(seen, may_suspend=True)])

    await turn.run()

    assert seen["most"] == 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("look", '{"at": "' + "x" * 1_000_001 + '"}'), "larger than 1000000 bytes"),
        (("nothing", {"at": "x"}), "no tool named nothing. The tools are: look"),
        (("look", {"at": 5, "times": "many"}), "It takes: at (required), times"),
        (("look", {}), "at: Field required"),
        (("look", {"at": "x", "workspace_id": "other"}), "workspace_id: Extra inputs are not permitted"),
        (("look", '{"at": "x"'), "not valid JSON"),
        (("look", '["x"]'), "one JSON object"),
        (("look", "[" * 5_000), "not valid JSON"),
        (("look", '{"at": "x", "__proto__": {}}'), "not valid JSON"),
    ],
)
async def test_a_wrong_call_is_told_to_the_model_and_the_turn_goes_on(
    kit: Any, answer_of: AnswerOf, call: tuple[str, Any], told: str
) -> None:
    turn = kit.turn(kit.calls(call), kit.says("I see."), tools=[look])

    result = await turn.run()

    last = turn.model.requests[1].messages[-1]
    assert last["role"] == "tool"
    assert told in last["content"]
    assert last["content"].startswith("Error: ")
    assert answer_of(result) == "I see."
    assert len(str(turn.model.requests[1].messages)) < 10_000


async def test_null_for_an_argument_with_a_default_means_the_default(kit: Any) -> None:
    turn = kit.turn(kit.calls(("look", {"at": "x", "times": None})), kit.says("ok"), tools=[look])

    result = await turn.run()

    assert outputs(result) == ["saw x "]


async def test_a_failing_tool_is_an_error_for_the_model_not_for_the_turn(kit: Any, answer_of: AnswerOf) -> None:
    @tool("break", access="read")
    async def breaks(run: RunContext) -> str:
        """Break."""
        raise ZeroDivisionError("inner detail")

    @tool("miss", access="read")
    async def miss(run: RunContext) -> str:
        """Miss."""
        raise NotFoundError("There is no such file.")

    @tool("hang", access="read", timeout_s=0.01)
    async def hang(run: RunContext) -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    turn = kit.turn(kit.calls(("break", {}), ("miss", {}), ("hang", {})), kit.says("ok"), tools=[breaks, miss, hang])

    result = await turn.run()

    assert outputs(result) == [
        "error: break failed on our side; the same call will fail again.",
        "error: There is no such file.",
        "error: hang did not finish within 0.01 s.",
    ]
    assert answer_of(result) == "ok"


async def test_a_credential_in_an_output_is_redacted_and_a_long_output_cut_for_the_model(kit: Any) -> None:
    @tool("dump", access="read")
    async def dump(run: RunContext) -> str:
        """Dump."""
        return "postgres://u:hunter22@db/x\n" + "line\n" * 20_000

    turn = kit.turn(kit.calls(("dump", {})), kit.says("ok"), tools=[dump])

    result = await turn.run()

    assert "hunter22" not in outputs(result)[0]
    assert len(outputs(result)[0]) < 65_000
    assert len(turn.model.requests[1].messages[-1]["content"]) < 2_400
    assert "characters are missing" in turn.model.requests[1].messages[-1]["content"]


async def test_the_same_call_is_refused_the_third_time_and_a_stuck_model_gets_no_tools(
    kit: Any, answer_of: AnswerOf
) -> None:
    again = kit.calls(("look", {"at": "x"}))
    turn = kit.turn(again, again, again, again, kit.says("I give up."), tools=[look], max_steps=20)

    result = await turn.run()

    assert [text[:11] for text in outputs(result)] == ["saw x ", "saw x ", "error: You ", "error: You "]
    calls = [part for part in result.parts if "toolCallId" in part]
    assert ["durationMs" in part.get("toolMetadata", {}) for part in calls] == [True, True, False, False]
    assert turn.model.requests[4].tool_choice == "none"
    assert (answer_of(result), result.steps, result.budget_exhausted) == ("I give up.", 5, False)


async def test_after_a_change_the_same_look_is_made_again(kit: Any) -> None:
    at = {"at": "x"}
    look_and_change = [
        kit.calls(("look", at)),
        kit.calls(("change", at)),
        kit.calls(("look", at), ("change", {"at": "y"})),
    ]
    turn = kit.turn(*look_and_change, *look_and_change, kit.says("ok"), tools=[look, change], max_steps=20)

    result = await turn.run()

    assert not any(text.startswith("error") for text in outputs(result))


async def test_ids_that_a_server_uses_again_in_the_next_answer_are_made_unique(kit: Any) -> None:
    turn = kit.turn(
        kit.calls(("look", {"at": "a"}), ids=["call-0"]),
        kit.calls(("look", {"at": "b"}), ids=["call-0"]),
        kit.says("ok"),
        tools=[look],
    )

    result = await turn.run()

    assert [part["toolCallId"] for part in result.parts if part["type"] == "tool-look"] == ["call-0", "call-0-2"]
    assert outputs(result) == ["saw a ", "saw b "]


async def test_too_many_calls_in_one_step_are_answered_and_not_made(kit: Any) -> None:
    batch = kit.calls(*(("look", {"at": str(number)}) for number in range(40)))
    turn = kit.turn(batch, kit.says("ok"), tools=[look])

    result = await turn.run()

    assert sum(text.startswith("saw") for text in outputs(result)) == 32
    assert sum(text.startswith("error: At most 32") for text in outputs(result)) == 8


async def test_a_model_is_offered_no_more_tools_than_its_profile_bears(kit: Any) -> None:
    small = replace(kit.context().model, max_tools=1)
    turn = kit.turn(
        kit.calls(("change", {"at": "x"})), kit.says("ok"), tools=[look, change], context=kit.context(model=small)
    )

    result = await turn.run()

    assert [tool["function"]["name"] for tool in turn.model.requests[0].tools] == ["look"]
    assert outputs(result) == ["error: There is no tool named change. The tools are: look."]


# -- before something is changed ----------------------------------------------------------------------------------


async def test_an_intent_is_stored_before_a_call_that_changes_something_and_only_then(kit: Any) -> None:
    stored_before: list[int] = []

    @tool("write", access="write")
    async def write(run: RunContext) -> str:
        """Write."""
        stored_before.append(len(turn.intents.rows))
        return "written"

    turn = kit.turn(kit.calls(("look", {"at": "x"}), ("write", {})), kit.says("ok"), tools=[look, write])

    await turn.run()

    assert stored_before == [1]
    assert [(step, call.name) for step, call in turn.intents.rows] == [(1, "write")]
    assert turn.lease.checks == 2


async def test_without_an_intent_row_there_is_no_call(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.calls(("change", {"at": "x"})), kit.says("Later then."), tools=[change])
    turn.intents.error = OSError("the database is away")

    result = await turn.run()

    assert "not carried out" in outputs(result)[0]
    assert "the database" not in outputs(result)[0]
    assert answer_of(result) == "Later then."


@pytest.mark.parametrize("port", ["lease", "intents"])
async def test_a_lost_lease_ends_the_run_without_another_word(kit: Any, port: str) -> None:
    turn = kit.turn(kit.calls(("look", {"at": "x"}), ("change", {"at": "x"})), kit.says("ok"), tools=[look, change])
    getattr(turn, port).error = LeaseLostError()

    with pytest.raises(LeaseLostError):
        await turn.run()

    assert not {"finish", "abort", "error"} & set(turn.kinds)
    assert len(turn.model.requests) == 1


async def test_a_read_only_run_refuses_what_changes_something_and_stores_no_intent(kit: Any) -> None:
    turn = kit.turn(
        kit.calls(("change", {"at": "x"})),
        kit.says("ok"),
        tools=[change],
        context=kit.context(policy=WorkspacePolicy("read-only")),
    )

    result = await turn.run()

    assert "not allowed here" in outputs(result)[0]
    assert turn.intents.rows == []


# -- stop ---------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(5)
async def test_a_stop_while_the_model_is_silent_keeps_the_text_and_closes_its_stream(
    kit: Any, answer_of: AnswerOf
) -> None:
    turn = kit.turn([TextDelta("Once upon"), asyncio.Event(), TextDelta(" a time")])
    running = asyncio.create_task(turn.run())
    await turn.model.waiting.wait()

    turn.stop.stop("stopped by the person")
    result = await running

    assert (answer_of(result), result.finish_reason) == ("Once upon", "stopped")
    assert turn.kinds[-4:] == ["text-end", "finish-step", "message-metadata", "abort"]
    assert turn.chunks[-1]["reason"] == "stopped by the person"
    assert turn.model.closed == 1


@pytest.mark.timeout(5)
async def test_a_stop_in_the_middle_of_a_tool_ends_it_and_keeps_what_had_finished(kit: Any) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @tool("wait", access="read")
    async def wait(run: RunContext) -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    turn = kit.turn(kit.calls(("look", {"at": "x"}), ("wait", {})), tools=[look, wait])
    running = asyncio.create_task(turn.run())
    await begun.wait()
    while "tool-output-available" not in turn.kinds:
        await asyncio.sleep(0)

    turn.stop.stop()
    result = await running

    assert cancelled.is_set()
    assert outputs(result) == ["saw x ", "error: Stopped before it finished."]
    assert result.finish_reason == "stopped"
    assert len(turn.model.requests) == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize("wait", [False, True])
async def test_a_stop_at_any_chunk_leaves_a_closed_message(kit: Any, wait: bool) -> None:
    def made() -> Any:
        replies = [
            [*kit.thinks("hm"), *kit.calls(("look", {"at": "a"}), ("change", {"at": "b"}), text="Well")],
            kit.says("Done."),
        ]
        return kit.turn(*replies, tools=[look, change])

    whole = made()
    await whole.run()

    for position in range(1, len(whole.chunks) + 1):
        turn = made()
        sent = 0

        def stop(_: Any, turn: Any = turn, position: int = position) -> None:
            nonlocal sent
            sent += 1
            if sent == position and wait:
                asyncio.get_running_loop().call_soon(turn.stop.stop)
            elif sent == position:
                turn.stop.stop()

        turn.on_chunk = stop
        result = await turn.run()

        assert turn.kinds[-1] in {"abort", "finish"}
        assert result.finish_reason == ("stopped" if turn.kinds[-1] == "abort" else "stop")
        assert not any(
            part.get("state") in {"streaming", "input-streaming", "input-available"} for part in result.parts
        )


async def test_a_stop_before_the_turn_begins_asks_no_model(kit: Any) -> None:
    turn = kit.turn(kit.says("Hello"))
    turn.stop.stop()

    result = await turn.run()

    assert (result.finish_reason, turn.model.requests, result.parts[-1:]) == ("stopped", [], [{"type": "step-start"}])


@pytest.mark.timeout(5)
async def test_a_cancellation_by_the_owner_passes_on_even_beside_a_stop(kit: Any) -> None:
    turn = kit.turn([asyncio.Event()])
    running = asyncio.create_task(turn.run())
    await turn.model.waiting.wait()

    running.cancel()
    turn.stop.stop()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert turn.model.closed == 1


# -- when the model fails -----------------------------------------------------------------------------------------


async def test_a_model_that_is_gone_gives_a_plain_sentence_and_an_error(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn([ModelTimeoutError()])

    result = await turn.run()

    assert answer_of(result) == "The model server did not answer in time."
    assert turn.chunks[-1] == {"type": "error", "errorText": "The model server did not answer in time."}
    assert (result.finish_reason, result.error_class) == ("error", "timeout")
    sentence = "The model server did not answer in time."
    metadata = turn.chunks[-2]["messageMetadata"]
    assert metadata["error"] == {"class": "timeout", "code": "model_timeout", "text": sentence}
    assert result.parts[-1]["providerMetadata"] == FAILURE


async def test_a_model_cut_in_mid_answer_keeps_the_text_it_had_written(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn([TextDelta("Half of"), ModelProviderError("The connection broke.", started=True)])

    result = await turn.run()

    assert answer_of(result) == "Half of\nThe connection broke."
    assert turn.kinds[-1] == "error"


async def test_a_model_cut_in_mid_call_closes_the_call(kit: Any) -> None:
    turn = kit.turn(
        [ToolCallStart(0, "c", "look"), ToolCallDelta(0, '{"at": '), ModelProviderError(started=True)], tools=[look]
    )

    result = await turn.run()

    assert outputs(result) == ["error: The model's answer broke off before this call."]
    assert turn.kinds[-1] == "error"


async def test_an_answer_without_an_end_is_a_failure(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn([TextDelta("Half")])

    result = await turn.run()

    assert "broke off" in answer_of(result)
    assert result.finish_reason == "error"


async def test_a_full_queue_before_the_model_is_told_as_such(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn([RateLimitedError("Too many wait for this model.")])

    result = await turn.run()

    assert (answer_of(result), result.error_class) == ("Too many wait for this model.", "rate_limit")


async def test_a_defect_behind_the_model_port_does_not_show_its_words(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn([ZeroDivisionError("inner detail")])

    result = await turn.run()

    assert "inner detail" not in answer_of(result)
    assert result.finish_reason == "error"


async def test_a_model_that_never_stops_writing_is_ended(kit: Any) -> None:
    turn = kit.turn([TextDelta("x" * 500_000)] * 5)

    result = await turn.run()

    assert "did not stop writing" in result.parts[-1]["text"]
    assert result.error_class == "provider"


async def test_a_prompt_longer_than_the_server_takes_is_shortened_once(kit: Any, answer_of: AnswerOf) -> None:
    past = [kit.user("word " * 400), {"role": "assistant", "parts": [{"type": "text", "text": "word " * 400}]}] * 5
    turn = kit.turn([ContextOverflowError()], kit.says("Fits."), history=past)

    result = await turn.run()

    first, second = (len(str(request.messages)) for request in turn.model.requests)
    assert second < first
    assert answer_of(result) == "Fits."


async def test_a_message_that_can_never_fit_is_told_so_without_asking_the_model(kit: Any, answer_of: AnswerOf) -> None:
    turn = kit.turn(kit.says("ok"), message=kit.user("word " * 20_000))

    result = await turn.run()

    assert "too long for this model" in answer_of(result)
    assert (turn.model.requests, result.error_class) == ([], "validation")


async def test_finished_for_tools_without_a_call_is_an_ordinary_end(kit: Any) -> None:
    turn = kit.turn([TextDelta("Hm."), Finished("tool-calls")])

    result = await turn.run()

    assert result.finish_reason == "stop"
