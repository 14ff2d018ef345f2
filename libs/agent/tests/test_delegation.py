"""Delegation: what a specialist is given, what its supervisor reads, and what is told and kept of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from libs.agent.tests.company import PROFILE, company, specialist
from libs.agent.tests.looking import AnswerOf, change, look, outputs
from popagent_agent.delegate_context import Said, capped_steps, context_slice, conversation, last_text
from popagent_agent.run_context import RunWorkspace, WorkspacePolicy
from popagent_agent.tokens import estimate_tokens
from popagent_kit.clock import now
from popagent_models.events import Usage
from popagent_proto.chat.messages import AgentActivity
from popagent_sandbox.brief import RepoBrief

ASK = ("agent-scout", {"prompt": "Find it."})


def said(role: str, text: str) -> dict[str, Any]:
    return {"id": "m", "role": role, "parts": [{"type": "text", "text": text}]}


async def test_a_supervisor_reads_the_specialists_text_alone(kit: Any, answer_of: AnswerOf) -> None:
    works = [kit.calls(("look", {"at": "shelf"}), text="Looking."), kit.says("It is on the shelf.")]
    made = company(kit, kit.calls(ASK), kit.says("On the shelf."), scout=works, tools=[look])

    result = await made.run()

    assert made.told == ["It is on the shelf."]
    assert answer_of(result) == "On the shelf."
    assert "saw shelf" not in str(made.turn.model.requests[-1].messages)
    [tool] = made.turn.model.requests[0].tools
    assert (tool["function"]["name"], tool["function"]["description"]) == ("agent-scout", "Ask scout.")
    assert list(tool["function"]["parameters"]["properties"]) == ["prompt", "instructions", "maxSteps"]
    assert tool["function"]["parameters"]["required"] == ["prompt"]


async def test_a_specialist_is_given_its_own_words_route_and_the_conversation_up_to_the_person(kit: Any) -> None:
    given = {"prompt": "Find it.", "instructions": "Be quick.", "maxSteps": None}
    made = company(kit, kit.calls(("agent-scout", given), text="On it."), kit.says("ok"), scout=[kit.says("Here.")])
    made.turn.history = [
        said("user", "Hello"),
        said("assistant", "Welcome."),
        said("user", "Old"),
        said("assistant", "A"),
    ]
    made.turn.message = said("user", "Where is my key?")

    await made.run()

    [request] = made.models["scout"].requests
    system, message = request.messages
    assert (request.model, system["content"]) == ("scout-model", "You are scout.\n\nBe quick.")
    assert request.origin.agent_id == "scout"
    context, task = message["content"].split("</context>")
    assert task.strip() == "Find it."
    assert context.index("Person: Hello") < context.index("Orchestrator: Welcome.") < context.index("Person: Where is")
    assert "On it." not in context


async def test_nobody_delegates_further_and_only_those_may_be_asked_who_are_offered(kit: Any) -> None:
    agents = [specialist("scout"), specialist("hidden", delegable=False), specialist("orchestrator")]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[kit.says("Here.")], agents=agents, tools=[look])

    await made.run()

    offered = [tool["function"]["name"] for tool in made.turn.model.requests[0].tools]
    assert offered == ["agent-scout"]
    assert [tool["function"]["name"] for tool in made.models["scout"].requests[0].tools] == ["look"]


@pytest.mark.parametrize(
    ("research", "offered"), [(True, ["agent-researcher", "agent-scout"]), (False, ["agent-scout"])]
)
async def test_the_researcher_is_withheld_where_there_is_nothing_to_look_at(
    kit: Any, research: bool, offered: list[str]
) -> None:
    folder: Any = object()
    made = company(kit, kit.says("ok"), agents=[specialist("researcher"), specialist("scout")])
    workspace = RunWorkspace("w", "shop", folder, "read-only", RepoBrief(research=research))
    made.turn.context = replace(made.turn.context, workspace=workspace)

    await made.run()

    assert [tool["function"]["name"] for tool in made.turn.model.requests[0].tools] == offered


@pytest.mark.parametrize(("asked", "steps"), [(None, 3), (2, 2), ("2", 2), (100, 3)])
async def test_no_call_raises_the_ceiling_and_every_budget_ends_in_an_answer(kit: Any, asked: Any, steps: int) -> None:
    loops = [kit.calls(("look", {"at": str(number)})) for number in range(steps - 1)]
    given = {"prompt": "Go.", **({} if asked is None else {"maxSteps": asked})}
    settings = {"specialist_max_steps": 3}
    script = [*loops, kit.says("That is all.")]
    made = company(
        kit, kit.calls(("agent-scout", given)), kit.says("ok"), scout=script, tools=[look], settings=settings
    )

    await made.run()

    requests = made.models["scout"].requests
    assert (len(requests), requests[-1].tool_choice) == (steps, "none")
    assert made.told == ["That is all."]
    assert made.activity["call-0"]["budgetExhausted"] is True


async def test_a_specialist_that_only_calls_tools_is_made_to_answer_or_fails(kit: Any, answer_of: AnswerOf) -> None:
    script = [kit.calls(("look", {"at": "x"}))]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=script, tools=[look])

    result = await made.run()

    assert made.told == ["Error: It failed."]
    assert made.activity["call-0"]["state"] == "failed"
    assert answer_of(result) == "ok"


async def test_usage_is_summed_over_the_tree(kit: Any) -> None:
    script = [kit.says("Here.", usage=Usage(100, 50, 10, 5, estimated=True))]
    both = kit.calls(ASK, ("agent-scout", {"prompt": "Find another."}))
    made = company(kit, both, kit.says("ok"), scout=script)

    result = await made.run()

    assert result.usage == Usage(20 + 10 + 200, 7 + 5 + 100, 20, 10, estimated=True)
    assert made.turn.chunks[-2]["messageMetadata"]["usage"]["inputTokens"] == 230
    assert [data["usage"]["inputTokens"] for data in made.activity.values()] == [100, 100]


async def test_what_a_specialist_does_is_told_in_deltas_and_stored_merged(kit: Any) -> None:
    works = [kit.calls(("look", {"at": "shelf"}), ("look", {"at": []}), text="Looking."), kit.says("x" * 600)]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=works, tools=[look])

    await made.run()

    data = made.activity["call-0"]
    told = AgentActivity.model_validate(data)
    assert told.model_dump(mode="json", by_alias=True, exclude_unset=True) == data
    assert (data["agentId"], data["state"], data["steps"], data["task"]) == ("scout", "completed", 2, "Find it.")
    assert told.started_at is not None
    assert timedelta(0) <= now() - told.started_at < timedelta(minutes=1)
    entries = list(data["entries"].values())
    assert entries[0] == {"step": 1, "kind": "text", "text": "Looking."}
    assert [entry["state"] for entry in entries[1:3]] == ["done", "failed"]
    assert (entries[1]["tool"], entries[1]["input"]) == ("look", '{"at":"shelf"}')
    assert "".join(entry["text"] for entry in entries[3:]) == "x" * 600
    assert {entry["step"] for entry in entries[3:]} == {2}
    assert all(chunk["transient"] and chunk["id"] == "call-0" for chunk in made.deltas)
    assert max(len(str(chunk)) for chunk in made.deltas) < 1_000
    assert made.turn.kinds.count("data-agentActivity") == len(made.deltas) > 5


@pytest.mark.parametrize("before", range(90, 125, 7))
async def test_what_a_specialist_says_holds_no_credential_wherever_it_is_cut(kit: Any, before: int) -> None:
    key = "sk-proj-" + "A1b2C3d4" * 6
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[kit.says(f"{'w ' * (before // 2)}{key} end.")])

    await made.run()

    said = "".join(entry["text"] for entry in made.activity["call-0"]["entries"].values())
    assert "sk-[redacted] end." in said
    assert "A1b2" not in said


async def test_activity_is_bounded_whatever_a_specialist_does(kit: Any) -> None:
    batch = [kit.calls(*(("look", {"at": f"{step}-{number}" * 400}) for number in range(32))) for step in range(12)]
    settings = {"specialist_max_steps": 20}
    script = [*batch, kit.says("word " * 40_000)]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=script, tools=[look], settings=settings)

    await made.run()

    data = made.activity["call-0"]
    assert (len(data["entries"]), data["state"]) == (200, "completed")
    assert data["omitted"] > 100
    assert len(str(data)) < 100_000


async def test_a_delegate_has_a_thread_of_its_own_and_every_message_names_it(kit: Any) -> None:
    works = [kit.calls(("look", {"at": "shelf"})), kit.says("Here.")]
    made = company(kit, kit.calls(ASK, ASK), kit.says("ok"), scout=works, tools=[look])

    result = await made.run()

    first, second = sorted(made.threads.kept, key=lambda thread: thread.call_id)
    assert len({first.thread_id, first.resource_id, second.thread_id, second.resource_id, "session-1"}) == 5
    assert (first.agent_id, first.call_id, first.state) == ("scout", "call-0", "completed")
    question, answer = first.messages
    assert question["parts"] == [{"type": "text", "text": "Find it."}]
    assert [part["type"] for part in answer["parts"]][-1] == "text"
    ids = {"threadId": first.thread_id, "resourceId": first.resource_id}
    assert question["metadata"] == answer["metadata"] == ids
    assert made.activity["call-0"]["threadId"] == first.thread_id
    assert "tool-look" not in {part["type"] for part in result.parts}


async def test_a_thread_that_cannot_be_kept_costs_the_record_and_not_the_result(kit: Any) -> None:
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[kit.says("Here.")])
    made.threads.error = OSError("away")

    await made.run()

    assert made.told == ["Here."]


async def test_a_long_result_is_cut_with_the_text_of_the_settings_and_holds_no_credential(kit: Any) -> None:
    secret = "postgres://u:hunter22@db/x"
    settings = {"delegation_result_characters": 200}
    script = [kit.says("a" * 185 + " " + secret + "b" * 5_000)]
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=script, settings=settings)

    result = await made.run()

    [text] = outputs(result)
    assert text.endswith("\n\nCut.")
    assert len(text) <= 206
    assert "hunter" not in text


@pytest.mark.parametrize("letter", ["a", "ä", "漢"])
async def test_what_a_supervisor_cannot_read_of_a_result_is_cut_with_the_same_text_and_shown_as_it_is_read(
    kit: Any, letter: str
) -> None:
    settings = {"delegation_result_characters": 12_000}
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[kit.says(letter * 5_000)], settings=settings)

    result = await made.run()

    [read] = made.told
    assert read.endswith(f"{letter}\n\nCut.")
    assert outputs(result) == [read]
    assert 1_900 < len(read.encode()) <= 2_100  # 600 tokens


async def test_a_specialist_has_its_own_rights_and_its_effects_are_written_down_apart(kit: Any) -> None:
    agents = [specialist("scout", workspace_access="read-write"), specialist("judge", workspace_access="read-only")]
    step = kit.calls(("agent-scout", {"prompt": "a"}), ("agent-judge", {"prompt": "b"}))
    works = [kit.calls(("change", {"at": "x"})), kit.says("Done.")]
    made = company(kit, step, kit.says("ok"), scout=works, judge=works, agents=agents, tools=[change])
    made.turn.context = replace(made.turn.context, policy=WorkspacePolicy("read-only"))

    await made.run()

    assert [(step, call.call_id) for step, call in made.turn.intents.rows] == [(1, "call-0/call-0")]
    results = [str(thread.messages[-1]["parts"]) for thread in made.threads.kept]
    assert any("changed x" in text for text in results)
    assert any("not allowed here" in text for text in results)


async def test_a_specialist_works_in_the_runs_workspace_with_its_own_access(kit: Any) -> None:
    folder: Any = object()
    agents = [specialist("scout", workspace_access="read-only"), specialist("judge")]
    step = kit.calls(("agent-scout", {"prompt": "a"}), ("agent-judge", {"prompt": "b"}))
    made = company(kit, step, kit.says("ok"), scout=[kit.says("x")], judge=[kit.says("y")], agents=agents)
    made.turn.context = replace(made.turn.context, workspace=RunWorkspace("w", "shop", folder, "read-write"))

    await made.run()

    systems = {name: model.requests[0].messages[0]["content"] for name, model in made.models.items()}
    assert "shop. You may read it." in systems["scout"]
    assert "shop" not in systems["judge"]


async def test_a_specialist_has_the_workspace_that_its_supervisor_may_not_look_at(kit: Any) -> None:
    folder: Any = object()
    scout = specialist("scout", workspace_access="read-only")
    made = company(kit, kit.calls(ASK), kit.says("ok"), scout=[kit.says("x")], agents=[scout])
    made.turn.context = replace(made.turn.context, workspace=RunWorkspace("w", "shop", folder, "none"))

    await made.run()

    assert "shop. You may read it." in made.models["scout"].requests[0].messages[0]["content"]
    assert "shop" not in made.turn.model.requests[0].messages[0]["content"]


async def test_after_a_specialist_that_may_change_files_the_same_look_is_made_again(kit: Any) -> None:
    at = kit.calls(("look", {"at": "x"}))
    agents = [specialist("scout", workspace_access="read-write")]
    replies = [at, at, kit.calls(ASK), at, kit.says("ok")]
    made = company(kit, *replies, scout=[kit.says("Changed.")], agents=agents, own_tools=[look])

    result = await made.run()

    assert outputs(result) == ["saw x ", "saw x ", "Changed.", "saw x "]


async def test_a_small_model_is_offered_some_of_its_tools_and_some_of_its_specialists(kit: Any) -> None:
    made = company(kit, kit.says("ok"), own_tools=[look, change], one=[], two=[], three=[])
    small = replace(made.turn.context.model, max_tools=3)
    made.turn.context = replace(made.turn.context, model=small)

    await made.run()

    offered = [tool["function"]["name"] for tool in made.turn.model.requests[0].tools]
    assert offered == ["look", "change", "agent-one"]


# -- the rules alone ----------------------------------------------------------------------------------------------


def test_the_slice_is_the_newest_messages_that_say_something_and_ends_with_the_person() -> None:
    called = {"id": "m", "role": "assistant", "parts": [{"type": "tool-look", "state": "output-available"}]}
    messages = [said("user", "1"), said("assistant", "2"), called, said("user", "3"), said("assistant", "4")]

    assert [each.text for each in context_slice(messages, 10)] == ["1", "2", "3"]
    assert [each.text for each in context_slice(messages, 2)] == ["3"]
    assert context_slice(messages, 1) == context_slice(messages, 0) == []
    assert [each.text for each in context_slice([said("user", "a\U000e0041b")], 1)] == ["ab"]


def test_a_long_conversation_keeps_its_end_within_the_bound() -> None:
    tail = [Said("user", f"{number} " + "word " * 2_000) for number in range(50)]

    [segment] = conversation(tail, "Orchestrator", PROFILE.context // 8)

    assert estimate_tokens(segment.text) < PROFILE.context // 8 + 100
    assert "Person: 49 " in segment.text
    assert "Person: 0 " not in segment.text
    assert conversation([], "Orchestrator", 1_000) == []


def test_the_result_is_the_last_words_and_not_what_was_said_on_the_way() -> None:
    parts = [
        {"type": "step-start"},
        {"type": "text", "text": "Looking."},
        {"type": "step-start"},
        {"type": "text", "text": "Here."},
        {"type": "text", "text": "And there."},
        {"type": "step-start"},
    ]

    assert last_text(parts) == "Here.\n\nAnd there."
    assert last_text([]) == ""


def test_steps_are_capped(kit: Any) -> None:
    assert [capped_steps(asked, kit.settings) for asked in (None, 1, 16, 17)] == [16, 1, 16, 16]
