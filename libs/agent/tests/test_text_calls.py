"""Calls that a model wrote as text: carried out when the answer is nothing else, and text in every other case."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.agent.tests.looking import AnswerOf, change, look, outputs
from popagent_agent.text_calls import TextCallWatch, judged, recovered
from popagent_models.errors import ModelProviderError
from popagent_models.events import Finished, TextDelta, ToolCallDelta, ToolCallStart, Usage
from popagent_uistream.reducer import MessageReducer

NAMES = ("look", "change")
AT_X = '{"at": "x"}'
CALL = f'{{"name": "look", "arguments": {AT_X}}}'
WRITTEN = [
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"\n\n<tool_call>{CALL}",
    f"```json\n{CALL}\n```",
    f"```\n[{CALL}]\n```\n",
    f"```xml\n<tool_call>{CALL}</tool_call>\n```",
    CALL,
    f"[{CALL}]",
    '{"name": "look", "arguments": "{\\"at\\": \\"x\\"}"}',
    '{"tool": "look", "parameters": {"at": "x"}}',
    '{"arguments": {"at": "x"}, "name": "look"}',
    '{"id": "1", "type": "function", "function": {"name": "look", "arguments": {"at": "x",},},}',
    f"<function=look>{AT_X}</function>",
    "<function=look>\n<parameter=at>\nx\n</parameter>\n</function>",
    "<tool_call>\n<function=look>\n<parameter=at>x</parameter>\n</function>\n</tool_call>",
]
PROSE = [
    f"I will look now.\n<tool_call>{CALL}</tool_call>",
    f"<tool_call>{CALL}</tool_call>\nThat was it.",
    f"The file says:\n```json\n{CALL}\n```",
    f"```json\n{CALL}\n```\nis what such a call looks like.",
    f"```python\n{CALL}\n```",
    f"> {CALL}",
    f"`{CALL}`",
    '{"name": "fly", "arguments": {}}',
    '{"name": "look"}',
    '{"name": "look", "arguments": {"at": "x"}, "comment": "y"}',
    '{"name": "look", "arguments": ["x"]}',
    '{"name": "look", "arguments": "x"}',
    '{"name": "look", "arguments": {"at": "x"}',
    '{"version": 1, "name": "look"}',
    "[1, 2]",
    "[]",
    "<tool_call></tool_call>",
    "<tool_calls>",
    "<function=fly>{}</function>",
    "<function=look>{}</function> done",
    "<parameter=at>x</parameter>",
    "```\nplain\n```",
    "``` ```",
    "",
]


def pieces(text: str, size: int) -> list[Any]:
    return [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("written", WRITTEN)
async def test_an_answer_that_is_nothing_but_a_call_is_carried_out_and_shown_as_one(
    kit: Any, answer_of: AnswerOf, written: str, size: int
) -> None:
    turn = kit.turn([*pieces(written, size), Usage(1, 1), Finished("stop")], kit.says("Seen."), tools=[look, change])

    result = await turn.run()

    assert answer_of(result) == "Seen."
    assert outputs(result) == ["saw x "]
    [call] = [part for part in result.parts if part["type"] == "tool-look"]
    assert (call["input"], call["state"]) == ({"at": "x"}, "output-available")
    assert turn.kinds.index("tool-input-start") < turn.kinds.index("text-start")
    sent = turn.model.requests[1].messages[-2]
    assert (sent["content"], sent["tool_calls"][0]["function"]) == ("", {"name": "look", "arguments": '{"at":"x"}'})


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("written", PROSE)
async def test_anything_else_stays_the_text_that_it_is(kit: Any, answer_of: AnswerOf, written: str, size: int) -> None:
    turn = kit.turn([*pieces(written, size), Usage(1, 1), Finished("stop")], kit.says("ok"), tools=[look, change])

    result = await turn.run()

    assert outputs(result) == []
    assert answer_of(result).removesuffix("\nok") == (written or "ok")


async def test_several_calls_in_one_answer_are_carried_out_in_their_order(kit: Any) -> None:
    other = CALL.replace("x", "y")
    turn = kit.turn(
        kit.says(f"<tool_call>{CALL}</tool_call>\n<tool_call>{other}</tool_call>"), kit.says("ok"), tools=[look]
    )

    result = await turn.run()

    assert outputs(result) == ["saw x ", "saw y "]


async def test_a_value_may_hold_what_looks_like_a_mark(kit: Any) -> None:
    value = 'a </parameter> in <tool_call> {"name": "look"}'
    element = f"<function=look><parameter=at>{value}</parameter></function>"
    quoted = '<tool_call>{"name": "look", "arguments": {"at": "</tool_call>"}}</tool_call>'
    turn = kit.turn(kit.says(element), kit.says(quoted), kit.says("ok"), tools=[look])

    result = await turn.run()

    assert outputs(result) == [f"saw {value} ", "saw </tool_call> "]


async def test_a_call_beside_its_own_text_is_made_once(kit: Any, answer_of: AnswerOf) -> None:
    both = [TextDelta(f"<tool_call>{CALL}</tool_call>"), ToolCallStart(0, "c", "look"), ToolCallDelta(0, AT_X)]
    turn = kit.turn([*both, Usage(1, 1), Finished("tool-calls")], kit.says("ok"), tools=[look])

    result = await turn.run()

    assert (outputs(result), answer_of(result)) == (["saw x "], "ok")


async def test_where_no_tool_may_be_used_a_written_call_is_not_shown_as_the_answer(
    kit: Any, answer_of: AnswerOf
) -> None:
    turn = kit.turn(kit.says(CALL), kit.says("In words."), tools=[look], max_steps=1)

    result = await turn.run()

    assert (outputs(result), answer_of(result)) == ([], "In words.")


async def test_text_is_not_held_back_longer_than_it_may_be_a_call(kit: Any) -> None:
    turn = kit.turn([*pieces("[x] is done. ```json", 1), Usage(1, 1), Finished("stop")], tools=[look])

    await turn.run()

    deltas = [chunk["delta"] for chunk in turn.chunks if chunk["type"] == "text-delta"]
    assert deltas == ["[x", *"] is done. ```json"]


async def test_an_answer_cut_in_its_beginning_keeps_its_text_and_half_a_call_is_no_text(
    kit: Any, answer_of: AnswerOf
) -> None:
    begun = kit.turn([TextDelta("``"), ModelProviderError("Broken.", started=True)], tools=[look])
    half = kit.turn([TextDelta('{"name": "look", '), ModelProviderError("Broken.", started=True)], tools=[look])

    texts = [answer_of(await turn.run()) for turn in (begun, half)]

    assert texts == ["``\nBroken.", "Broken."]


@given(st.text(alphabet='`<{[ \n"tool_calname:=>jsx', max_size=60), st.integers(1, 5))
def test_no_character_is_lost_or_said_twice(text: str, size: int) -> None:
    watch = TextCallWatch(NAMES)
    shown = "".join(watch.feed(text[at : at + size]) for at in range(0, len(text), size))

    rest, calls = watch.end()

    assert calls == [] or shown == ""
    assert calls or shown + rest == text


@given(st.sampled_from(WRITTEN), st.integers(0, 400))
def test_no_beginning_of_a_call_is_taken_for_text(written: str, length: int) -> None:
    assert judged(written[:length], NAMES) in {"undecided", "call"}


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "piece",
    [
        "<tool_call>",
        "```json\n",
        "[",
        '{"name": "look", "arguments": {',
        "<parameter=a>",
        "</parameter> ",
        "{",
        ",",
        '"',
    ],
)
def test_hostile_texts_cost_little(piece: str) -> None:
    began_at = time.process_time()

    for begin in ("", "<tool_call>", "<function=look>", "<function=look><parameter=a>", "[" + CALL, '{"arguments": '):
        assert len(recovered(begin + piece * (200_000 // len(piece)), NAMES)) <= 1
    assert time.process_time() - began_at < 5


async def test_what_was_shown_is_what_is_stored(kit: Any) -> None:
    turn = kit.turn(kit.says(WRITTEN[0]), kit.says("ok"), tools=[look])

    result = await turn.run()

    reducer = MessageReducer()
    for chunk in turn.chunks:
        reducer.apply(chunk)
    assert reducer.message["parts"] == result.parts
