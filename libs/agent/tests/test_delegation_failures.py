"""Specialists that fail, hang, say nothing or too much; supervisors that are stopped or many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.agent.tests.company import company, specialist
from libs.agent.tests.looking import AnswerOf, change, look, outputs
from popagent_agent.ports import LeaseLostError
from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_kit.errors import RateLimitedError
from popagent_models.errors import ModelConfigurationError, ModelProviderError, ModelTimeoutError
from popagent_models.events import Finished, TextDelta, Usage

ASK = ("agent-scout", {"prompt": "Find it."})
FAILED = ["Error: It failed."]


@pytest.mark.parametrize(
    "reply",
    [
        [ModelTimeoutError()],
        [RateLimitedError("Busy.")],
        [ZeroDivisionError("inner detail")],
        [TextDelta("Half of it"), ModelProviderError("Cut.", started=True)],
        [Usage(1, 0), Finished("stop")],
        [TextDelta("\u200b"), Usage(1, 0), Finished("stop")],
        [Usage(1, 0), Finished("content-filter")],
        [TextDelta("x" * 500_000)] * 21,
    ],
    ids=["timeout", "rate-limit", "defect", "cut", "nothing", "nothing to see", "filtered", "ten-megabytes"],
)
async def test_a_specialist_that_gives_no_result_costs_its_result_alone(
    kit: Any, answer_of: AnswerOf, reply: Any
) -> None:
    made = company(kit, kit.calls(ASK), kit.says("Without it then."), scout=[reply])

    result = await made.run()

    assert made.told == FAILED
    assert (answer_of(result), result.finish_reason) == ("Without it then.", "stop")
    assert made.activity["call-0"]["state"] == "failed"
    assert [thread.state for thread in made.threads.kept] == ["failed"]
    assert len(str(result.parts)) < 40_000


@pytest.mark.parametrize(
    "given",
    [
        *({}, {"prompt": ""}, {"prompt": " \n"}, {"prompt": "\u200b\u202e"}, {"prompt": None}, {"prompt": ["a"]}),
        *({"task": "Go."}, {"prompt": "Go.", "tools": ["shell"]}, {"prompt": "Go.", "threadId": "other"}),
        *({"prompt": "Go.", "maxSteps": wrong} for wrong in (0, -1, 2.5, "many", [3])),
        *('{"prompt": "Go.", "maxSteps": 1' + "0" * 5_000 + "}", '{"prompt": ', "[" * 20_000, "x" * 1_000_001),
    ],
    ids=range(18),
)
async def test_a_task_that_is_none_begins_no_run_and_the_model_is_told_why(
    kit: Any, answer_of: AnswerOf, given: Any
) -> None:
    made = company(kit, kit.calls(("agent-scout", given)), kit.says("ok"), scout=[kit.says("Here.")])

    result = await made.run()

    assert answer_of(result) == "ok"
    assert made.models["scout"].requests == []
    assert (made.activity, made.threads.kept) == ({}, [])
    [told] = made.told
    assert told.startswith("Error: The arguments")
    assert "Value error" not in told


@pytest.mark.timeout(10)
@pytest.mark.parametrize("most", [1, 3])
async def test_a_specialist_that_loops_for_ever_is_ended_by_its_ceiling_and_shown_within_it(
    kit: Any, answer_of: AnswerOf, most: int
) -> None:
    loops = [kit.calls(("look", {"at": str(number)})) for number in range(10)]
    made = company(
        kit, kit.calls(ASK), kit.says("ok"), scout=loops, tools=[look], settings={"specialist_max_steps": most}
    )

    result = await made.run()

    assert (answer_of(result), made.told) == ("ok", FAILED)
    shown = made.activity["call-0"]
    assert (shown["state"], shown["steps"], shown["maxSteps"]) == ("failed", most, most)


async def test_a_specialist_without_a_model_fails_and_the_turn_goes_on(kit: Any, answer_of: AnswerOf) -> None:
    lost = company(kit, kit.calls(ASK), kit.says("ok"), agents=[specialist("scout", route=None)])
    gone = company(kit, kit.calls(ASK), kit.says("ok"), scout=[])

    def refuse(agent: Any) -> Any:
        raise ModelConfigurationError("No model is connected.")

    object.__setattr__(gone.turn.delegates.specialists, "model_for", refuse)

    for made in (lost, gone):
        assert answer_of(await made.run()) == "ok"
        assert made.told == FAILED


@pytest.mark.timeout(10)
async def test_a_specialist_that_takes_too_long_is_ended_and_its_model_let_go(kit: Any) -> None:
    never = asyncio.Event()
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[[TextDelta("Hm"), never]], timeout_s=0.05)

    await made.run()

    assert made.told == FAILED
    assert made.models["scout"].closed == 1
    assert made.activity["call-0"]["state"] == "failed"
    assert "Hm" in str(made.threads.kept[0].messages[1]["parts"])


@pytest.mark.timeout(10)
async def test_a_stopped_supervisor_stops_its_specialists_and_keeps_what_they_did(kit: Any) -> None:
    never = asyncio.Event()
    usage = Usage(50, 20)
    slow = [[*kit.calls(("look", {"at": "x"}))[:-2], usage, Finished("tool-calls")], [TextDelta("So far"), never]]
    both = kit.calls(ASK, ("agent-quick", {"prompt": "Now."}))
    made = company(kit, both, kit.says("ok"), scout=slow, quick=[kit.says("Quick.")], tools=[look])
    running = asyncio.create_task(made.run())
    await made.models["scout"].waiting.wait()

    made.turn.stop.stop("stopped by the person")
    result = await running

    assert result.finish_reason == "stopped"
    assert outputs(result) == ["error: Stopped before it finished.", "Quick."]
    assert [data["state"] for data in made.activity.values()] == ["stopped", "completed"]
    assert (made.models["scout"].closed, len(made.turn.model.requests)) == (2, 1)
    assert {thread.agent_id: thread.state for thread in made.threads.kept} == {"scout": "stopped", "quick": "completed"}
    assert result.usage.input_tokens == 20 + 50 + 10
    assert made.turn.kinds[-1] == "abort"


@pytest.mark.timeout(20)
async def test_a_specialist_that_cannot_be_stopped_is_left_and_told_as_ended(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_agent.delegated_run.STOP_GRACE_S", 0.05)
    release = asyncio.Event()

    @tool("cling", access="read")
    async def cling(run: RunContext) -> str:
        """Cling."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ""

    script = [kit.calls(("cling", {}))]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=script, tools=[cling], timeout_s=0.05)

    await made.run()

    assert made.told == FAILED
    assert made.activity["call-0"]["state"] == "failed"
    assert made.activity["call-0"]["entries"]["1"]["state"] == "failed"
    release.set()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    await asyncio.gather(*left, return_exceptions=True)


@pytest.mark.timeout(10)
async def test_a_stop_at_any_chunk_of_a_delegation_leaves_a_closed_message(kit: Any) -> None:
    def made() -> Any:
        works = [kit.calls(("look", {"at": "x"}), text="Well"), kit.says("Here.")]
        return company(kit, kit.calls(ASK), kit.says("ok"), scout=works, tools=[look])

    whole = made()
    await whole.run()

    for position in range(1, len(whole.turn.chunks) + 1):
        one = made()
        sent = 0

        def stop(_: Any, one: Any = one, position: int = position) -> None:
            nonlocal sent
            sent += 1
            if sent == position:
                one.turn.stop.stop()

        one.turn.on_chunk = stop
        result = await one.run()

        assert one.turn.kinds[-1] in {"abort", "finish"}
        assert not any(part.get("state") in {"input-streaming", "input-available"} for part in result.parts)
        assert all(data["state"] != "running" for data in one.activity.values())


@pytest.mark.timeout(10)
@pytest.mark.parametrize("lost", [None, LeaseLostError()])
async def test_a_cancellation_by_the_owner_leaves_no_specialist_behind(kit: Any, lost: Exception | None) -> None:
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[[asyncio.Event()]])
    made.threads.error = lost
    running = asyncio.create_task(made.run())
    await made.models["scout"].waiting.wait()

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert made.models["scout"].closed == 1
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("delegation")]


@pytest.mark.parametrize("where", ["intent", "thread"])
async def test_a_lost_lease_ends_the_whole_run_without_another_word(kit: Any, where: str) -> None:
    works = [kit.calls(("change", {"at": "x"})), kit.says("Done.")]
    agents = [specialist("scout", workspace_access="read-write")]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=works, agents=agents, tools=[change])
    (made.turn.intents if where == "intent" else made.threads).error = LeaseLostError()

    with pytest.raises(LeaseLostError):
        await made.run()

    assert not {"finish", "abort", "error"} & set(made.turn.kinds)
    assert made.threads.kept == []
    assert len(made.turn.model.requests) == 1


@pytest.mark.timeout(30)
async def test_delegations_run_side_by_side_up_to_the_limit_of_tool_calls(kit: Any) -> None:
    now = most = 0

    @tool("count", access="read")
    async def count(run: RunContext) -> str:
        """Count."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(50):
            await asyncio.sleep(0)
        now -= 1
        return "counted"

    names = [f"s{number}" for number in range(6)]
    scripts = {name: [kit.calls(("count", {})), kit.says(f"{name} is done.")] for name in names}
    step = kit.calls(*((f"agent-{name}", {"prompt": "Go."}) for name in names))
    made = company(kit, step, kit.says("ok"), tools=[count], **scripts)

    await made.run()

    assert most == kit.settings.concurrent_tool_calls == 4
    assert made.told == [f"{name} is done." for name in names]


@pytest.mark.timeout(30)
async def test_twenty_supervisors_at_once_with_three_delegations_each_lose_nothing(
    kit: Any, answer_of: AnswerOf
) -> None:
    def made(number: int) -> Any:
        works = {name: [kit.calls(("look", {"at": name})), kit.says(f"{name} {number}")] for name in ("a", "b", "c")}
        step = kit.calls(*((f"agent-{name}", {"prompt": f"Go {number}."}) for name in works))
        return company(kit, step, kit.says(f"answer {number}"), tools=[look], **works)

    turns = [made(number) for number in range(20)]

    results = await asyncio.gather(*(one.run() for one in turns))

    for number, (one, result) in enumerate(zip(turns, results, strict=True)):
        assert answer_of(result) == f"answer {number}"
        assert one.told == [f"a {number}", f"b {number}", f"c {number}"]
        assert [data["state"] for data in one.activity.values()] == ["completed"] * 3
        assert len(one.threads.kept) == 3
