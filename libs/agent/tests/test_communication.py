"""Letters in runs: who is woken works as a specialist does, and what is written is read, told, counted and ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from libs.agent.tests.company import Company, company, specialist
from libs.agent.tests.looking import AnswerOf, change, look
from popagent_agent.communication import CAME, NAME, NONE_CAN_COME, NOTHING
from popagent_agent.letters import LARGEST_BODY_BYTES, NO_FINDINGS
from popagent_agent.loop import AgentRun, first_request
from popagent_agent.ports import LeaseLostError, ToolCall
from popagent_agent.run_context import WorkspacePolicy
from popagent_models.errors import ModelProviderError
from popagent_models.events import Finished, TextDelta, Usage
from popagent_models.profile import ModelProfile

BIG = ModelProfile(32_768, 128, 2_000, 120.0)
ASK = ("agent-scout", {"prompt": "Find it."})
WAIT = (NAME, {"operation": "wait"})
PEERS = (NAME, {"operation": "peers"})


def writes(to: str, message: str) -> tuple[str, dict[str, Any]]:
    return NAME, {"operation": "send", "to": to, "message": message}


def peers(kit: Any, *replies: Any, model: ModelProfile = BIG, **options: Any) -> Company:
    """A company whose agents are offered letters; the specialists are those that have a script."""
    names = [name for name in options if name in {"scout", "smith"}]
    agents = options.pop("agents", None) or [specialist(name, model=BIG) for name in names]
    made = company(kit, *replies, agents=agents, **options)
    made.turn.context = replace(made.turn.context, model=model)
    return made


def read_by(model: Any, number: int = -1) -> str:
    """All that a model read in one of its steps."""
    return "\n".join(str(message.get("content")) for message in model.requests[number].messages)


async def test_a_specialist_asks_another_one_and_works_on_with_the_answer(kit: Any, answer_of: AnswerOf) -> None:
    scout = [kit.calls(writes("smith", "Which key fits?")), kit.calls(WAIT), kit.says("The brass key fits.")]
    smith = [kit.calls(("look", {"at": "lock"}), text="I look."), kit.says("The brass one.")]
    made = peers(kit, kit.calls(ASK), kit.says("Brass."), scout=scout, smith=smith, tools=[look])

    result = await made.run()

    assert (made.told, answer_of(result)) == (["The brass key fits."], "Brass.")
    asked = made.models["smith"].requests[0]
    assert (asked.messages[0]["content"], asked.origin.agent_id) == ("You are smith.", "smith")
    assert "scout wrote letter-1 to you:\n\nWhich key fits?" in asked.messages[1]["content"]
    assert "Person: Hello?" in asked.messages[1]["content"]
    sent, came = [each["content"] for each in made.models["scout"].requests[-1].messages if each["role"] == "tool"]
    assert sent.startswith("letter-1: smith was woken by it")
    assert came == "letter-2 from smith, the answer to letter-1:\nThe brass one."
    assert "I look." not in read_by(made.models["scout"])


async def test_who_was_woken_is_shown_kept_and_counted_as_a_delegate_is(kit: Any) -> None:
    scout = [kit.calls(writes("smith", "Which key fits?")), kit.calls(WAIT), kit.says("Brass.")]
    made = peers(kit, kit.calls(ASK), kit.says("ok"), scout=scout, smith=[kit.says("Brass.", usage=Usage(100, 50))])

    result = await made.run()

    given, woken = made.activity["call-0"], made.activity["call-0/call-0"]
    assert ("askedBy" in given, woken["askedBy"], woken["agentId"]) == (False, "scout", "smith")
    assert (woken["state"], woken["task"], woken["steps"]) == ("completed", "Which key fits?", 1)
    assert [entry["text"] for entry in woken["entries"].values()] == ["Brass."]
    threads = {thread.call_id: thread for thread in made.threads.kept}
    assert {call_id: each.agent_id for call_id, each in threads.items()} == {
        "call-0": "scout",
        "call-0/call-0": "smith",
    }
    assert threads["call-0/call-0"].state == "completed"
    assert result.usage == Usage(20 + 10 + 3 * 20 - 10 + 100, 7 + 5 + 2 * 7 + 5 + 50)


async def test_each_has_its_own_rights_and_its_effects_are_written_down_under_its_own_calls(kit: Any) -> None:
    agents = [
        specialist("scout", model=BIG, workspace_access="read-only"),
        specialist("smith", model=BIG, workspace_access="read-write"),
    ]
    scout = [kit.calls(("change", {"at": "x"}), writes("smith", "Change y.")), kit.calls(WAIT), kit.says("Done.")]
    smith = [kit.calls(("change", {"at": "y"})), kit.says("Changed.")]
    made = peers(kit, kit.calls(ASK), kit.says("ok"), scout=scout, smith=smith, agents=agents, tools=[change])
    made.turn.context = replace(made.turn.context, policy=WorkspacePolicy("read-only"))

    await made.run()

    assert [call.call_id for _, call in made.turn.intents.rows] == ["call-0/call-1/call-0"]
    assert "not allowed here" in read_by(made.models["scout"])


async def test_a_letter_that_came_stands_in_every_later_step_where_it_was_read(kit: Any) -> None:
    smith = [kit.calls(writes("orchestrator", "The lock is new.")), kit.says("So it is.")]
    replies = [kit.calls(("agent-smith", {"prompt": "Look."})), kit.calls(("look", {"at": "door"})), kit.says("Done.")]
    made = peers(kit, *replies, scout=[], smith=smith, own_tools=[look])

    await made.run()

    letter = "letter-1 from smith:\nThe lock is new."
    assert letter not in read_by(made.turn.model, 0)
    for number in (1, 2):
        roles = [message["role"] for message in made.turn.model.requests[number].messages]
        at = next(i for i, each in enumerate(made.turn.model.requests[number].messages) if letter in each["content"])
        assert roles[: at + 1] == ["system", "user", "assistant", "tool", "user"]
        assert CAME in read_by(made.turn.model, number)
    assert read_by(made.turn.model).count(letter) == 1


async def test_letters_that_come_after_the_answer_are_answered_for_and_nothing_is_lost(
    kit: Any, answer_of: AnswerOf
) -> None:
    gate = asyncio.Event()
    made = peers(
        kit,
        kit.calls(writes("smith", "Which key?")),
        kit.says("I have asked."),
        kit.says("The brass one."),
        smith=[[gate, *kit.says("Brass.")]],
    )
    running = asyncio.create_task(made.run())
    await made.models["smith"].waiting.wait()

    gate.set()
    result = await running

    assert answer_of(result) == "I have asked.\nThe brass one."
    assert "letter-2 from smith, the answer to letter-1:\nBrass." in read_by(made.turn.model)
    assert "Answer again, whole" in read_by(made.turn.model)
    assert made.activity["call-0"]["state"] == "completed"
    assert made.turn.kinds[-1] == "finish"


async def test_an_answer_stands_when_nothing_is_added_to_it(kit: Any, answer_of: AnswerOf) -> None:
    nothing = [Usage(1, 0), Finished("stop")]
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.says("So it is."), nothing, smith=[kit.says("Yes.")])

    result = await made.run()

    assert (answer_of(result), result.answered) == ("So it is.", True)
    assert len(made.turn.model.requests) == 3


async def test_the_ceiling_of_steps_holds_whatever_letters_come(kit: Any, answer_of: AnswerOf) -> None:
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.says("So it is."), smith=[kit.says("Yes.")])
    made.turn.max_steps = 2

    result = await made.run()

    assert (answer_of(result), result.steps) == ("So it is.", 2)


async def test_who_can_be_written_to_is_told_with_what_to_ask_them_for(kit: Any) -> None:
    both = kit.calls(ASK, PEERS)
    made = peers(kit, both, kit.says("ok"), scout=[kit.calls(PEERS), kit.says("Here.")], smith=[])

    await made.run()

    assert made.told[1] == "scout (at work): Ask scout.\nsmith (idle): Ask smith."
    assert "orchestrator (at work): \nsmith (idle): Ask smith." in read_by(made.models["scout"])


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


async def test_one_that_answers_in_mid_run_has_answered(kit: Any) -> None:
    reply = (NAME, {"operation": "reply", "letterId": "letter-1", "message": "Brass."})
    smith = [kit.calls(reply), kit.says("I told them.")]
    made = peers(kit, kit.calls(writes("smith", "Which?")), kit.calls(WAIT), kit.says("ok"), smith=smith)

    await made.run()

    assert read_by(made.turn.model).count("from smith, the answer to letter-1:\nBrass.") == 1
    assert "orchestrator is at work and reads it before its next step." in read_by(made.models["smith"])


async def test_two_who_wait_for_each_other_are_told_so_at_once(kit: Any) -> None:
    both = kit.calls(ASK, ("agent-smith", {"prompt": "Make it."}))
    script = [kit.calls(WAIT), kit.says("Nobody wrote.")]
    made = peers(kit, both, kit.says("ok"), scout=script, smith=script)

    async with asyncio.timeout(10):
        await made.run()

    assert made.told == ["Nobody wrote."] * 2
    assert all(NONE_CAN_COME in read_by(model) for model in made.models.values())


async def test_nobody_polls_for_ever_and_a_letter_makes_the_next_wait_a_new_one(kit: Any) -> None:
    inbox = kit.calls((NAME, {"operation": "inbox"}))
    polls = [inbox, inbox, inbox, kit.calls(writes("smith", "Hm?"), WAIT), inbox, kit.says("ok")]
    made = peers(kit, *polls, smith=[kit.says("Yes.")])

    await made.run()

    first, second, third, _, came, after = made.told
    assert (first, second, after) == (NOTHING, NOTHING, NOTHING)
    assert "You made this same call before" in third
    assert came.endswith("Yes.")


async def test_letters_hold_no_credential(kit: Any) -> None:
    key = "sk-proj-" + "A1b2C3d4" * 6
    smith = [kit.says(f"The key is {key}.")]
    made = peers(kit, kit.calls(writes("smith", f"Is {key} right?")), kit.calls(WAIT), kit.says("ok"), smith=smith)

    result = await made.run()

    assert "A1b2" not in read_by(made.models["smith"])
    assert "A1b2" not in made.told[1]
    assert "A1b2" not in str(result.parts)


async def test_an_answer_is_cut_as_a_result_is(kit: Any) -> None:
    settings = {"delegation_result_characters": 200}
    smith = [kit.says("a" * 500)]
    made = peers(
        kit, kit.calls(writes("smith", "Hm?")), kit.calls(WAIT), kit.says("ok"), smith=smith, settings=settings
    )

    await made.run()

    assert made.told[1].endswith("a\n\nCut.")


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


@dataclass
class Guard:
    """Refuses what it is told to; remembers what it heard."""

    refused: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    told: list[tuple[str, str, bool]] = field(default_factory=list)

    async def before_tool(self, agent_id: str, call: ToolCall) -> str | None:
        self.asked.append((agent_id, call.name))
        return "The hook “Guard” refused this: no." if call.name == self.refused else None

    async def after_tool(self, agent_id: str, call: ToolCall, text: str, *, error: bool) -> None:
        if call.name != NAME:
            self.told.append((call.name, text, error))

    async def before_end(self, text: str) -> str | None:
        del text
        return None


@pytest.mark.parametrize("refused", ["", "agent-smith"])
async def test_hooks_are_asked_about_whoever_is_woken_as_about_work_that_is_handed_on(kit: Any, refused: str) -> None:
    made = peers(kit, kit.calls(writes("smith", "Hm?")), kit.calls(WAIT), kit.says("ok"), smith=[kit.says("Yes.")])
    guard = Guard(refused)
    made.turn.context = replace(made.turn.context, hooks=guard)

    await made.run()

    assert guard.asked == [("orchestrator", NAME), ("orchestrator", "agent-smith"), ("orchestrator", NAME)]
    if refused:
        assert "answer to letter-1:\nThe hook “Guard” refused this: no." in read_by(made.turn.model)
        assert (guard.told, made.activity) == ([], {})
    else:
        assert guard.told == [("agent-smith", "Yes.", False)]


async def test_a_small_model_is_offered_no_letters_and_answers_them_by_its_last_words(kit: Any) -> None:
    small = specialist("smith")
    made = peers(
        kit,
        kit.calls(writes("smith", "Hm?")),
        kit.calls(WAIT),
        kit.says("ok"),
        smith=[kit.says("Yes.")],
        agents=[small],
    )

    await made.run()

    assert made.told[1].endswith(":\nYes.")
    assert made.models["smith"].requests[0].tools == []
    offered = [tool["function"]["name"] for tool in made.turn.model.requests[0].tools]
    assert offered == ["agent-smith", NAME]


async def test_letters_are_offered_where_somebody_can_be_written_to_whatever_else_is(kit: Any) -> None:
    alone = kit.turn(kit.says("ok"), context=kit.context(model=BIG), tools=[look])
    await alone.run()
    among = peers(kit, kit.says("ok"), smith=[], own_tools=[look])
    before = among.turn.context.agent.tools

    await among.run()

    assert [tool["function"]["name"] for tool in alone.model.requests[0].tools] == ["look"]
    assert [tool["function"]["name"] for tool in among.turn.model.requests[0].tools] == ["look", "agent-smith", NAME]
    assert among.turn.context.agent.tools == before


async def test_a_composed_first_step_is_the_one_that_is_asked(kit: Any) -> None:
    made = peers(kit, kit.says("ok"), smith=[])
    turn = made.turn
    run = AgentRun(turn.context, "answer-1", turn.history, turn.message, turn.max_steps)

    composed = first_request(run, turn.tools, turn.delegates)
    await made.run()

    assert composed == turn.model.requests[0]


async def test_many_letters_leave_room_for_the_rest_of_a_turn(kit: Any) -> None:
    smith = [kit.calls(*(writes("orchestrator", f"{n} " + "word " * 1_000) for n in range(20))), kit.says("Done.")]
    looks = [kit.calls(("look", {"at": str(number)})) for number in range(6)]
    model = replace(BIG, context=18_000, tool_output_tokens=4_000)
    made = peers(
        kit,
        kit.calls(("agent-smith", {"prompt": "Go."})),
        *looks,
        kit.says("ok"),
        smith=smith,
        own_tools=[look],
        model=model,
    )

    result = await made.run()

    assert result.finish_reason == "stop"
    assert max(len(read_by(made.turn.model, number)) for number in range(8)) < 18_000 * 3.5
    told = read_by(made.turn.model)
    assert all(f"letter-{n} from smith" in told for n in (13, 14))
    assert "characters are missing" in told


def never_ends() -> asyncio.Event:
    return asyncio.Event()
