from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popagent_models.answer import Answer
from popagent_models.assembly import Assembly
from popagent_models.errors import ModelError, ModelProviderError, ModelRateLimitedError
from popagent_models.events import ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from popagent_models.request import ModelRequest
from popagent_models.tool_calls import ToolCallAssembly
from popagent_testing.asking import Heard

REQUEST = ModelRequest("m", [{"role": "user", "content": "hi"}])


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def lines(*payloads: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + orjson.dumps(payload) + b"\n\n" for payload in payloads)


def heard(*payloads: dict[str, Any]) -> Heard:
    assembly = Assembly(REQUEST, "host")
    events: list[ModelEvent] = [event for payload in payloads for event in assembly.take(payload)]
    return Heard(events + assembly.end())


def call(arguments: object = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        # index and id on the first fragment only
        ([call("", "a", index=0, id="x"), call('{"k"', index=0), call(":1}", index=0)], [("a", '{"k":1}')]),
        # a new id in every fragment
        ([call("{", "a", index=0, id="x"), call("}", index=0, id="y")], [("a", "{}")]),
        # index 0 for every call, told apart by id and name
        ([call("{}", "a", index=0, id="x"), call("[]", "b", index=0, id="y")], [("a", "{}"), ("b", "[]")]),
        # neither index nor id, whole calls
        ([call("{}", "a"), call("{}", "a"), call("{}", "b")], [("a", "{}"), ("a", "{}"), ("b", "{}")]),
        # neither index nor id, fragments
        ([call("{", "a"), call("}")], [("a", "{}")]),
        # the name repeated in every fragment
        ([call("{", "a", index=0, id="x"), call("}", "a", index=0, id="x")], [("a", "{}")]),
        ([call("{", "a"), call("}", "a")], [("a", "{}")]),
        # ids without index, interleaved
        (
            [call("{", "a", id="x"), call("[", "b", id="y"), call("}", id="x"), call("]", id="y")],
            [("a", "{}"), ("b", "[]")],
        ),
        # arguments before the name
        ([call("{", index=0), call("}", "a", index=0)], [("a", "{}")]),
        # an object, an array, nothing
        ([call({"k": 1}, "a", index=0)], [("a", '{"k":1}')]),
        ([call(None, "a", index=0)], [("a", "")]),
        # no name at all
        ([call("{}", index=0, id="x")], [("unnamed", "{}")]),
        # rubbish
        ([call(7, "a", index="0"), "text", None, 5, {"function": "f"}], [("a", "")]),
    ],
)
def test_fragments_find_their_call(fragments: list[Any], expected: list[tuple[str, str]]) -> None:
    result = heard(*(delta(tool_calls=[fragment]) for fragment in fragments))

    assert [(name, arguments) for _, name, arguments in result.calls] == expected


def test_one_id_for_two_calls_becomes_two_ids() -> None:
    result = heard(delta(tool_calls=[call("{}", "a", index=0, id="x"), call("{}", "b", index=1, id="x")]))

    ids = [call_id for call_id, _, _ in result.calls]
    assert ids[0] == "x"
    assert ids[1].startswith("call_")


def test_calls_without_end_are_refused() -> None:
    assembly = ToolCallAssembly()

    with pytest.raises(ModelProviderError, match="128"):
        assembly.take([call("{}", "a", index=index) for index in range(200)])


def test_long_arguments_in_many_fragments_cost_no_more_than_their_length() -> None:
    assembly = ToolCallAssembly()
    assembly.take([call("", "write", index=0, id="x")])

    begun = time.process_time()  # ours alone, however busy the machine is
    for _ in range(100_000):
        assembly.take([call("a line\n", index=0)])

    assert time.process_time() - begun < 4
    assert len(assembly.slots[0].arguments) == 100_000 * 7


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\ud83d", "\ude00b"], "a😀b"),
        (["a\ud83d", "b"], "a\ufffdb"),
        (["\ude00"], "\ufffd"),
        (["end\ud83d"], "end\ufffd"),
        (["nul\x00"], "nul\ufffd"),
    ],
)
def test_text_is_storable_whatever_the_server_splits(pieces: list[str], text: str) -> None:
    result = heard(*(delta(content=piece) for piece in pieces))

    assert result.text == text
    result.text.encode()


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": "x"},
        {"choices": [{"index": [], "delta": None}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        delta(content=None),
        delta(content=7),
        delta(content=""),
        delta(tool_calls={}),
        delta(role="assistant"),
        {"error": None, "usage": "none", "model": 5},
    ],
)
def test_payloads_without_meaning_give_nothing(payload: dict[str, Any]) -> None:
    assert heard(payload).events == []


def test_content_in_parts_and_refusals_are_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]

    assert heard(delta(content=parts), delta(refusal="no")).text == "abno"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"error": {"message": "x", "code": 429}}, ModelRateLimitedError),
        ({"error": {"message": "Rate limit reached"}}, ModelRateLimitedError),
        ({"error": "something"}, ModelProviderError),
        ({"object": "error", "message": "x", "code": "503"}, ModelProviderError),
    ],
)
def test_an_error_object_is_raised_by_its_code(payload: dict[str, Any], kind: type[ModelError]) -> None:
    with pytest.raises(kind):
        Assembly(REQUEST, "host").take(payload)


def test_a_json_answer_needs_no_finish_reason_but_content() -> None:
    complete, blank = Answer(REQUEST, "host"), Answer(REQUEST, "host")
    list(complete.feed(b'{"choices":[{"message":{"content":"hi"}}]}'))
    list(blank.feed(b'{"status":"ok"}'))

    assert complete.end()[0] == TextDelta("hi")
    with pytest.raises(ModelProviderError):
        blank.end()


def test_fragments_that_come_together_are_one_event_and_those_of_two_texts_are_two() -> None:
    answer = Answer(REQUEST, "host")
    pieces = [
        delta(reasoning="so "),
        delta(reasoning="so"),
        delta(content="a"),
        delta(content="b"),
        delta(tool_calls=[call('{"k"', "f", index=0, id="x")]),
        delta(tool_calls=[call(":1}", index=0)]),
        delta(tool_calls=[call("{}", "g", index=1, id="y")]),
    ]

    together = list(answer.feed(lines(*pieces)))
    alone = list(answer.feed(lines(delta(content="c"))))

    assert together == [
        ReasoningDelta("so so"),
        TextDelta("ab"),
        ToolCallStart(0, "x", "f"),
        ToolCallDelta(0, '{"k":1}'),
        ToolCallStart(1, "y", "g"),
        ToolCallDelta(1, "{}"),
    ]
    assert alone == [TextDelta("c")]


def test_what_came_before_an_error_of_the_same_moment_was_said() -> None:
    answer = Answer(REQUEST, "host")
    events = answer.feed(lines(delta(content="a"), delta(content="b"), {"error": {"message": "x", "code": 500}}))

    assert next(events) == TextDelta("ab")
    with pytest.raises(ModelProviderError):
        next(events)
    assert answer.started


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, (5, 2, False)),
        ({"input_tokens": 5, "output_tokens": 2}, (5, 2, False)),
        ({"prompt_tokens": "5", "completion_tokens": None}, (1, 0, True)),
        ({"prompt_tokens": -5, "completion_tokens": 10**12}, (1, 0, True)),
        ({"prompt_tokens": True}, (1, 0, True)),
    ],
)
def test_usage_that_makes_no_sense_is_estimated(usage: dict[str, Any], expected: tuple[int, int, bool]) -> None:
    assembly = Assembly(REQUEST, "host")
    assembly.take({"usage": usage})

    found = assembly.usage

    assert (found.input_tokens, found.output_tokens, found.estimated) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "tool_calls", "function", "index", "id", "name", "arguments", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "model"]), JSON, max_size=3), max_size=4))
def test_no_payload_crashes_the_assembly(payloads: list[dict[str, Any]]) -> None:
    result = heard(*payloads)

    started = {event.index for event in result.events if isinstance(event, ToolCallStart)}
    assert {event.index for event in result.events if isinstance(event, ToolCallDelta)} <= started
