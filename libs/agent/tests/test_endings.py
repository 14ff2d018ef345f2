"""Turns that are stopped, and turns whose model fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.agent.tests.looking import AnswerOf, change, look, outputs
from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_kit.errors import RateLimitedError
from popagent_models.errors import ContextOverflowError, ModelProviderError, ModelTimeoutError
from popagent_models.events import Finished, TextDelta, ToolCallDelta, ToolCallStart
from popagent_models.profile import ModelProfile
from popagent_proto.chat.messages import FAILURE

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


@pytest.mark.parametrize(("bound", "asked"), [(700, 700), (None, 2_048)])
async def test_what_a_small_model_may_write_in_a_step_is_bounded_by_its_profile_or_its_window(
    kit: Any, bound: int | None, asked: int
) -> None:
    profile = ModelProfile(8_192, 4, 600, 300.0, reply_tokens=bound)
    turn = kit.turn([TextDelta("Yes."), Finished("stop")], context=kit.context(model=profile))

    await turn.run()

    assert [request.max_tokens for request in turn.model.requests] == [asked]
