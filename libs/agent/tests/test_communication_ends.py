"""Letters that cannot be sent or answered, and runs that end while somebody works who was woken by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.agent.tests.company import specialist
from libs.agent.tests.looking import AnswerOf
from libs.agent.tests.peers import ASK, WAIT, never_ends, peers, read_by, writes
from popagent_agent.communication import NAME, NONE_CAN_COME
from popagent_agent.letters import LARGEST_BODY_BYTES, NO_FINDINGS
from popagent_agent.ports import LeaseLostError
from popagent_models.errors import ModelProviderError
from popagent_models.events import Finished, TextDelta, Usage


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"operation": "send", "to": "stranger", "message": "Hi"}, "Nobody here is called 'stranger'"),
        ({"operation": "send", "to": "orchestrator", "message": "Hi"}, "A letter to yourself is not sent."),
        ({"operation": "send", "to": "smith"}, "An empty letter is not sent."),
        ({"operation": "send", "message": "Hi"}, "Say it in `to`."),
        ({"operation": "send", "to": "smith", "message": "x" * (LARGEST_BODY_BYTES + 1)}, "at most 8,000 bytes"),
        ({"operation": "reply", "letterId": "letter-1", "message": "Hi"}, "No letter 'letter-1' was written to you."),
        ({"operation": "send", "to": "smith", "message": "Hi", "sender": "scout"}, "sender: Extra inputs"),
        ({"operation": "forge"}, "operation: Input should be"),
    ],
)
async def test_what_cannot_be_sent_is_refused_in_words_and_wakes_nobody(
    kit: Any, given: dict[str, Any], why: str
) -> None:
    made = peers(kit, kit.calls((NAME, given)), kit.says("ok"), scout=[], smith=[])

    await made.run()

    [told] = made.told
    assert told.startswith("Error: ")
    assert why in told
    assert made.activity == {}


@pytest.mark.parametrize(
    ("script", "answer", "state"),
    [
        ([ModelProviderError("Down.")], "It failed.", "failed"),
        ([TextDelta("Half"), ModelProviderError("Cut.", started=True)], "It failed.", "failed"),
        ([ZeroDivisionError("inner detail")], "It failed.", "failed"),
        ([Usage(1, 0), Finished("stop")], NO_FINDINGS, "completed"),
    ],
    ids=["fails", "breaks off", "defect", "blank"],
)
async def test_a_question_to_one_that_fails_or_says_nothing_is_answered_all_the_same(
    kit: Any, answer_of: AnswerOf, script: Any, answer: str, state: str
) -> None:
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.calls(WAIT), kit.says("ok"), smith=[script])

    result = await made.run()

    assert made.told[1] == f"letter-2 from smith, the answer to letter-1:\n{answer}"
    assert (answer_of(result), result.finish_reason) == ("ok", "stop")
    assert made.activity["call-0"]["state"] == state


async def test_one_without_a_model_cannot_answer_and_says_so(kit: Any) -> None:
    agents = [specialist("smith", route=None)]
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.says("ok"), agents=agents)

    await made.run()

    assert "letter-2 from smith, the answer to letter-1:\nIt failed." in read_by(made.turn.model)


async def test_two_who_wait_for_each_other_are_told_so_at_once(kit: Any) -> None:
    both = kit.calls(ASK, ("agent-smith", {"prompt": "Make it."}))
    script = [kit.calls(WAIT), kit.says("Nobody wrote.")]
    made = peers(kit, both, kit.says("ok"), scout=script, smith=script)

    async with asyncio.timeout(10):
        await made.run()

    assert made.told == ["Nobody wrote."] * 2
    assert all(NONE_CAN_COME in read_by(model) for model in made.models.values())


@pytest.mark.timeout(10)
async def test_a_stopped_run_stops_who_was_woken_and_keeps_what_they_did(kit: Any) -> None:
    never = asyncio.Event()
    scout = [kit.calls(writes("smith", "Hm?")), kit.calls(WAIT), kit.says("x")]
    made = peers(kit, kit.calls(ASK), kit.says("ok"), scout=scout, smith=[[TextDelta("So far"), never]])
    running = asyncio.create_task(made.run())
    await made.models["smith"].waiting.wait()

    made.turn.stop.stop("stopped by the person")
    result = await running

    assert result.finish_reason == "stopped"
    assert {data["state"] for data in made.activity.values()} == {"stopped"}
    assert {thread.agent_id: thread.state for thread in made.threads.kept} == {"scout": "stopped", "smith": "stopped"}
    assert made.models["smith"].closed == 1
    assert made.turn.kinds[-1] == "abort"
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith(("woken", "delegation"))]


@pytest.mark.timeout(10)
async def test_a_run_that_waits_for_who_was_woken_can_be_stopped(kit: Any) -> None:
    never = asyncio.Event()
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.says("I have asked."), smith=[[never]])
    running = asyncio.create_task(made.run())
    await made.models["smith"].waiting.wait()
    while len(made.turn.model.requests) < 2:
        await asyncio.sleep(0)

    made.turn.stop.stop()
    result = await running

    assert (result.finish_reason, made.activity["call-0"]["state"]) == ("stopped", "stopped")


@pytest.mark.timeout(10)
async def test_a_run_that_fails_ends_who_was_woken(kit: Any) -> None:
    never = asyncio.Event()
    failing = [never, ModelProviderError("Down.")]
    made = peers(kit, kit.calls(writes("smith", "Hm?")), failing, smith=[[TextDelta("So far"), never_ends()]])
    running = asyncio.create_task(made.run())
    await made.models["smith"].waiting.wait()

    never.set()
    result = await running

    assert (result.finish_reason, made.activity["call-0"]["state"]) == ("error", "stopped")
    assert made.models["smith"].closed == 1


@pytest.mark.timeout(10)
async def test_a_run_that_is_cut_off_takes_who_was_woken_with_it(kit: Any) -> None:
    made = peers(kit, kit.calls(writes("smith", "Hm?")), [never_ends()], smith=[[TextDelta("So far"), never_ends()]])
    running = asyncio.create_task(made.run())
    await made.models["smith"].waiting.wait()
    await made.turn.model.waiting.wait()

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert made.models["smith"].closed == 1
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith(("woken", "delegation"))]


@pytest.mark.timeout(10)
async def test_one_that_takes_too_long_is_ended_and_answered_for(kit: Any) -> None:
    smith = [[TextDelta("Hm"), never_ends()]]
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.calls(WAIT), kit.says("ok"), smith=smith, timeout_s=0.05)

    await made.run()

    assert made.told[1].endswith(":\nIt failed.")
    assert made.activity["call-0"]["state"] == "failed"


async def test_a_woken_run_of_a_lost_turn_says_and_keeps_nothing_more(kit: Any) -> None:
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.calls(WAIT), kit.says("ok"), smith=[kit.says("Yes.")])
    made.threads.error = LeaseLostError("gone")

    await made.run()

    assert made.told[1] == NONE_CAN_COME
    assert made.threads.kept == []
