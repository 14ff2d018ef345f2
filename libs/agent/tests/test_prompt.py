from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from popagent_agent.messages import NO_ANSWER, NO_RESULT, assistant_messages
from popagent_agent.normalise import normalised
from popagent_agent.prompt import Prompt, Segment, Stability, base_segments, system_text
from popagent_agent.run_context import RunWorkspace, WorkspaceAccess
from popagent_agent.tokens import cut_text, estimate_tokens, message_tokens
from popagent_sandbox.brief import RepoBrief
from popagent_sandbox.contained import ContainedFolder


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"id": "m", "role": role, "parts": [{"type": "text", "text": text}]}


def called(call_id: str, state: str, **values: Any) -> dict[str, Any]:
    return {"type": "tool-look", "toolCallId": call_id, "state": state, **values}


def test_segments_stand_from_stable_to_volatile_and_those_of_the_turn_beside_the_message() -> None:
    segments = [
        Segment("recall", "Recalled.", Stability.TURN),
        Segment("memory", "Remembered.", Stability.SESSION),
        Segment("instructions", "Instructed.", Stability.AGENT),
        Segment("workspace", "Workspace.", Stability.WORKSPACE),
        Segment("overlay", "Overlaid.", Stability.AGENT),
    ]

    prompt = Prompt(segments, [], said("Hello"), 600)
    messages = prompt.compose([], 8_000)

    assert messages[0]["content"] == "Instructed.\n\nOverlaid.\n\nWorkspace.\n\nRemembered."
    assert messages[1] == {"role": "user", "content": "<context>\nRecalled.\n</context>\n\nHello"}


def test_a_run_begins_with_its_agents_instructions(kit: Any) -> None:
    assert system_text(base_segments(kit.context())) == "You are the orchestrator."


def test_what_a_model_has_to_be_told_stands_beside_the_message(kit: Any) -> None:
    told = kit.context(model=replace(kit.context().model, guidance="Be brief."))

    messages = Prompt(base_segments(told), [], said("Hello"), 600).compose([], 8_000)

    assert [message["content"] for message in messages] == [
        "You are the orchestrator.",
        "<context>\nBe brief.\n</context>\n\nHello",
    ]


def test_the_brief_of_a_checkout_is_told_to_models_that_have_room_for_it(kit: Any, tmp_path: Path) -> None:
    brief = RepoBrief(research=True, is_repository=True, branch="main", subjects=("First",))
    small = replace(kit.context().model, context=8_192)
    with ContainedFolder(tmp_path) as folder:
        told = kit.context(
            model=replace(small, context=32_768), workspace=RunWorkspace("w", "demo", folder, "read-only", brief)
        )
        silent = replace(told, workspace=RunWorkspace("w", "demo", folder, "read-only"))

        texts = [system_text(base_segments(run)) for run in (told, replace(told, model=small), silent)]

    assert texts[0].endswith('Git branch: main\nLast commits: "First"')
    assert texts[1] == texts[2]
    assert "Workspace: demo." in texts[2]


@pytest.mark.parametrize(
    ("access", "brief", "offered"),
    [
        ("read-only", RepoBrief(research=True), True),
        ("read-write", RepoBrief(research=False), False),
        ("none", RepoBrief(research=True), True),  # its supervisor may not look; it has rights of its own
        ("read-only", None, True),
    ],
)
def test_the_researcher_is_offered_by_what_the_brief_found(
    access: WorkspaceAccess, brief: RepoBrief | None, offered: bool, tmp_path: Path
) -> None:
    with ContainedFolder(tmp_path) as folder:
        assert RunWorkspace("w", "demo", folder, access, brief).offers_research is offered


def test_every_stored_call_gets_a_result_whatever_state_it_was_left_in() -> None:
    parts = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "Looking."},
        called("1", "output-available", input={"at": "x"}, output={"seen": 1}),
        called("2", "output-error", rawInput="{", errorText="not JSON"),
        called("3", "input-available", input={"at": "y"}),
        called("4", "input-streaming", input={"at": None}, rawInput='{"at"'),
        called("5", "approval-requested", input={}),
        called("6", "output-denied", input={}),
        {
            "type": "dynamic-tool",
            "toolName": "mcp",
            "toolCallId": "7",
            "state": "output-available",
            "input": 5,
            "output": "",
        },
        {"type": "step-start"},
        {"type": "data-activity", "data": 1},
        {"type": "text", "text": "Done."},
    ]

    messages = assistant_messages(parts, 600)

    assert [message["role"] for message in messages] == ["assistant", *["tool"] * 7, "assistant"]
    assert (
        [call["id"] for call in messages[0]["tool_calls"]]
        == [m["tool_call_id"] for m in messages[1:8]]
        == list("1234567")
    )
    assert [call["function"]["arguments"] for call in messages[0]["tool_calls"]][:3] == [
        '{"at":"x"}',
        "{}",
        '{"at":"y"}',
    ]
    assert [message["content"] for message in messages[1:8]] == [
        '{"seen":1}',
        "Error: not JSON",
        NO_RESULT,
        NO_RESULT,
        NO_RESULT,
        "Error: the person refused this call.",
        "",
    ]
    assert messages[8]["content"] == "Done."


def test_a_turn_that_ended_without_an_answer_is_closed_so_that_roles_alternate() -> None:
    history = [said("First?"), said("Second?"), said("Before any question", "assistant")][:2]

    messages = Prompt([], history, said("Third?"), 600).compose([], 8_000)

    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert messages[1]["content"] == NO_ANSWER


def test_an_answer_before_the_first_question_is_left_out() -> None:
    messages = Prompt([], [said("Hi!", "assistant")], said("Hello"), 600).compose([], 8_000)

    assert [message["role"] for message in messages] == ["user"]


def test_whole_turns_are_dropped_the_oldest_first() -> None:
    history = [message for n in range(10) for message in (said(f"question {n}"), said("word " * 200, "assistant"))]

    messages = Prompt([], history, said("now"), 600).compose([], 1_200)

    assert [m["content"] for m in messages if m["role"] == "user"] == ["question 7", "question 8", "question 9", "now"]


def test_the_outputs_of_a_long_turn_are_shortened_the_oldest_first() -> None:
    parts = []
    for number in range(4):
        parts += [
            {"type": "step-start"},
            called(str(number), "output-available", input={}, output=f"output {number} " + "word " * 300),
        ]

    messages = Prompt([], [], said("now"), 600).compose(parts, 1_400)

    lengths = [len(message["content"]) for message in messages if message["role"] == "tool"]
    assert lengths[0] < 300 < lengths[3]
    assert "output 0" in messages[2]["content"]


def test_a_cut_text_ends_on_a_line_and_tells_what_is_missing() -> None:
    text = "\n".join(f"line {number}" for number in range(1_000))

    cut = cut_text(text, 100)

    assert estimate_tokens(cut) <= 101
    assert cut.splitlines()[-1].startswith("[cut: ")
    assert cut.splitlines()[-2].startswith("line ")
    assert cut_text("short", 100) == "short"


PARTS = st.lists(
    st.one_of(
        st.just({"type": "step-start"}),
        st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=200)),
        st.builds(
            lambda state, text, n: called(f"call-{n}", state, input={"at": text}, output=text, errorText=text),
            st.sampled_from(
                ["input-streaming", "input-available", "output-available", "output-error", "output-denied"]
            ),
            st.text(max_size=3_000),
            st.integers(0, 99),
        ),
        st.just({"type": "source-url", "sourceId": "s", "url": "https://example.org"}),
    ),
    max_size=12,
)
HISTORY = st.lists(
    st.one_of(
        st.builds(said, st.text(max_size=500)),
        st.builds(lambda parts: {"id": "m", "role": "assistant", "parts": parts}, PARTS),
    ),
    max_size=12,
)


@hypothesis_settings(max_examples=150, deadline=None)
@given(history=HISTORY, parts=PARTS, text=st.text(min_size=1, max_size=300), budget=st.integers(200, 6_000))
def test_any_prompt_is_well_formed_and_holds_this_turns_input(
    history: list[dict[str, Any]], parts: list[dict[str, Any]], text: str, budget: int
) -> None:
    prompt = Prompt([Segment("instructions", "Be brief.", Stability.AGENT)], history, said(text), 300)

    for messages in (prompt.compose(parts, budget), prompt.compose_plain(parts, budget, "Answer.")):
        roles = [message["role"] for message in messages]
        assert roles[0] == "system"
        assert "system" not in roles[1:]
        assert roles[1] == "user"
        assert roles[-1] in {"user", "tool"}
        assert any(message["role"] == "user" and normalised(text) in message["content"] for message in messages)
        waiting: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                assert message["tool_call_id"] == waiting.pop(0)
            else:
                assert not waiting
                waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert not waiting


@hypothesis_settings(max_examples=100, deadline=None)
@given(history=HISTORY, parts=PARTS, budget=st.integers(200, 6_000))
def test_earlier_turns_are_kept_only_within_the_budget(
    history: list[dict[str, Any]], parts: list[dict[str, Any]], budget: int
) -> None:
    without = Prompt([], [], said("now"), 300).compose(parts, budget)
    messages = Prompt([], history, said("now"), 300).compose(parts, budget)

    assert messages[len(messages) - len(without) :] == without
    assert len(messages) == len(without) or sum(map(message_tokens, messages)) <= budget


def test_a_history_holds_only_names_and_ids_that_every_server_takes() -> None:
    odd = [
        {"type": "tool-re ad\x00\u202e!", "toolCallId": "id with blanks", "state": "output-error", "errorText": "No."},
        {
            "type": "dynamic-tool",
            "toolName": "",
            "toolCallId": "x" * 300,
            "state": "output-available",
            "output": "Yes.",
        },
        {"type": "tool-" + "y" * 200, "toolCallId": "call_1", "state": "output-available", "output": "Yes."},
    ]

    answer, *results = assistant_messages(odd, 600)
    again = assistant_messages(odd, 600)

    names = [call["function"]["name"] for call in answer["tool_calls"]]
    ids = [call["id"] for call in answer["tool_calls"]]
    assert names == ["re_ad___", "unnamed", "y" * 64]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", call_id) for call_id in ids)
    assert ids == [result["tool_call_id"] for result in results]
    assert (ids[2], len(set(ids))) == ("call_1", 3)
    assert again == [answer, *results]
