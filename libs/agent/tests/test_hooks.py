"""The loop asks its hooks before a call and before the end, obeys a refusal, and tells what calls gave."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from libs.agent.tests.company import company
from libs.agent.tests.looking import AnswerOf, change, look, outputs
from popagent_agent.ports import ToolCall
from popagent_agent.run_context import WorkspacePolicy
from popagent_proto.chat.messages import AgentActivity


@dataclass
class Hooks:
    """Refuses tools by name and so many answers; notes what it was asked and told."""

    refuses: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    seen: list[str] = field(default_factory=list)
    reached: asyncio.Event | None = None

    async def before_tool(self, agent_id: str, call: ToolCall) -> str | None:
        assert agent_id == "orchestrator"
        self.seen.append(f"before {call.name}")
        return self.refuses.get(call.name)

    async def after_tool(self, agent_id: str, call: ToolCall, text: str, *, error: bool) -> None:
        self.seen.append(f"after {call.name}: {text.strip()}{' (error)' if error else ''}")
        if self.reached is not None:
            self.reached.set()
            await asyncio.Event().wait()

    async def before_end(self, text: str) -> str | None:
        self.seen.append(f"end: {text}")
        self.objects -= 1
        return "There is no test." if self.objects >= 0 else None


async def test_a_refused_call_is_not_made_and_the_model_is_told_why(kit: Any) -> None:
    hooks = Hooks({"change": "Not on a Friday."})
    batch = kit.calls(("look", {"at": "x"}), ("change", {"at": "x"}))
    turn = kit.turn(batch, kit.says("ok"), tools=[look, change], context=kit.context(hooks=hooks))

    result = await turn.run()

    assert outputs(result) == ["saw x ", "error: Not on a Friday."]
    made, refused = (part["toolMetadata"] for part in result.parts if "toolCallId" in part)
    assert (list(made), refused) == (["durationMs"], {"refused": True})
    assert turn.intents.rows == []
    told = [message["content"] for message in turn.model.requests[1].messages if message["role"] == "tool"]
    assert told[1] == "Error: Not on a Friday."
    assert sorted(hooks.seen[:3]) == ["after look: saw x", "before change", "before look"]
    assert hooks.seen[3:] == ["end: ok"]


async def test_an_allowed_call_is_written_down_after_the_hooks_were_asked(kit: Any) -> None:
    hooks = Hooks()
    turn = kit.turn(
        kit.calls(("change", {"at": "x"})), kit.says("ok"), tools=[change], context=kit.context(hooks=hooks)
    )

    await turn.run()

    assert len(turn.intents.rows) == 1
    assert hooks.seen == ["before change", "after change: changed x", "end: ok"]


async def test_hooks_hear_of_failed_calls_and_not_of_those_that_the_run_may_not_make(kit: Any) -> None:
    hooks = Hooks()
    batch = kit.calls(("look", {"at": []}), ("change", {"at": "x"}), ("nothing", {}))
    context = kit.context(hooks=hooks, policy=WorkspacePolicy("read-only"))
    turn = kit.turn(batch, kit.says("ok"), tools=[look, change], context=context)

    await turn.run()

    assert [line.split(":")[0] for line in hooks.seen] == ["before look", "after look", "end"]
    assert hooks.seen[1].endswith("(error)")


async def test_an_answer_that_may_not_be_the_last_word_is_written_again(kit: Any, answer_of: AnswerOf) -> None:
    hooks = Hooks(objects=1)
    turn = kit.turn(
        kit.says("Done."), kit.calls(("look", {"at": "x"})), kit.says("Tested."), tools=[look],
        context=kit.context(hooks=hooks),
    )  # fmt: skip

    result = await turn.run()

    assert (answer_of(result), result.finish_reason, result.steps) == ("Done.\nTested.", "stop", 3)
    asked = turn.model.requests[1].messages
    assert [message["role"] for message in asked[-2:]] == ["assistant", "user"]
    assert asked[-2]["content"] == "Done."
    assert "There is no test." in asked[-1]["content"]
    assert [line for line in hooks.seen if line.startswith("end")] == ["end: Done.", "end: Tested."]


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_a_hook_that_always_objects_is_heard_as_often_as_the_settings_allow_then_by_the_person(
    kit: Any, answer_of: AnswerOf, retries: int
) -> None:
    settings = kit.settings.model_copy(update={"processor_retries": retries})
    context = kit.context(hooks=Hooks(objects=100), settings=settings)
    turn = kit.turn(kit.says("Done."), tools=[look], context=context)

    result = await turn.run()

    assert answer_of(result) == "Done.\n" * (retries + 1) + "There is no test."
    assert (len(turn.model.requests), result.finish_reason) == (retries + 1, "stop")


async def test_a_hook_sends_nobody_back_when_no_step_is_left(kit: Any, answer_of: AnswerOf) -> None:
    ceiling = kit.turn(kit.says("Done."), tools=[look], context=kit.context(hooks=Hooks(objects=100)), max_steps=2)

    result = await ceiling.run()

    assert len(ceiling.model.requests) == 2
    assert answer_of(result) == "Done.\nDone.\nThere is no test."
    assert result.finish_reason == "stop"


async def test_what_a_specialist_says_last_is_a_result_and_no_answer_that_hooks_are_asked_about(kit: Any) -> None:
    hooks = Hooks()
    made = company(
        kit, kit.calls(("agent-scout", {"prompt": "Look."})), kit.says("Done."), scout=[kit.says("It is there.")]
    )
    made.turn.context = replace(made.turn.context, hooks=hooks)

    await made.run()

    assert hooks.seen == ["before agent-scout", "after agent-scout: It is there.", "end: Done."]


async def test_a_call_keeps_its_result_when_the_run_is_stopped_while_hooks_are_told(kit: Any) -> None:
    hooks = Hooks(reached=asyncio.Event())
    turn = kit.turn(kit.calls(("change", {"at": "x"})), tools=[change], context=kit.context(hooks=hooks))
    running = asyncio.create_task(turn.run())
    assert hooks.reached is not None
    await hooks.reached.wait()

    turn.stop.stop("enough")
    result = await running

    assert (result.finish_reason, outputs(result)) == ("stopped", ["changed x"])


class HooksOfAll(Hooks):
    """Is asked by specialists as well."""

    async def before_tool(self, agent_id: str, call: ToolCall) -> str | None:
        return self.refuses.get(call.name)


async def test_of_a_refused_call_of_a_specialist_the_reason_is_told_and_of_one_that_failed_none(kit: Any) -> None:
    calls = kit.calls(("look", {"at": "x"}), ("nothing", {}))
    made = company(
        kit,
        kit.calls(("agent-scout", {"prompt": "Look."})),
        kit.says("Done."),
        scout=[calls, kit.says("I may not.")],
        tools=[look],
    )
    made.turn.context = replace(made.turn.context, hooks=HooksOfAll({"look": "Not here.\n Never."}))

    await made.run()

    data = made.activity["call-0"]
    told = AgentActivity.model_validate(data)
    assert told.model_dump(mode="json", by_alias=True, exclude_unset=True) == data
    refused, failed = (entry for entry in data["entries"].values() if entry["kind"] == "call")
    assert refused == {
        "step": 1,
        "kind": "call",
        "tool": "look",
        "input": '{"at":"x"}',
        "state": "failed",
        "refusal": "Not here. Never.",
    }
    assert ("refusal" in failed, failed["state"]) == (False, "failed")
