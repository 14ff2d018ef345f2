"""Letters in runs: who is woken works as a specialist does, and what is written is read, told and counted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from libs.agent.tests.company import specialist
from libs.agent.tests.looking import AnswerOf, change, look
from libs.agent.tests.peers import ASK, BIG, PEERS, WAIT, peers, read_by, writes
from popagent_agent.communication import CAME, NAME, NOTHING
from popagent_agent.loop import AgentRun, first_request
from popagent_agent.ports import ToolCall
from popagent_agent.run_context import WorkspacePolicy
from popagent_models.events import Finished, Usage


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


async def test_one_that_answers_in_mid_run_has_answered(kit: Any) -> None:
    reply = (NAME, {"operation": "reply", "letterId": "letter-1", "message": "Brass."})
    smith = [kit.calls(reply), kit.says("I told them.")]
    made = peers(kit, kit.calls(writes("smith", "Which?")), kit.calls(WAIT), kit.says("ok"), smith=smith)

    await made.run()

    assert read_by(made.turn.model).count("from smith, the answer to letter-1:\nBrass.") == 1
    assert "orchestrator is at work and reads it before its next step." in read_by(made.models["smith"])


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
