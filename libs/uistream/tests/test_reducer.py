from __future__ import annotations

import copy
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_testing.streams import random_stream
from popagent_uistream import chunks as c
from popagent_uistream.chunks import UNSET, Chunk
from popagent_uistream.partial_json import parse_partial
from popagent_uistream.reducer import MessageReducer, OrphanChunkError, interrupted, merge
from popagent_uistream.snapshot import snapshot_chunks
from popagent_uistream.state import StreamState

SEEDS = st.integers(0, 2**32)
STORED = ("data-agentActivity",)


def reduced(sent: list[Chunk]) -> dict[str, Any]:
    return copy.deepcopy(MessageReducer(store_transient=STORED).apply_all(sent))


def parts_of(*sent: Chunk) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = reduced([c.start(message_id="m"), *sent])["parts"]
    return parts


def test_an_answer_with_a_tool_call_becomes_a_message() -> None:
    message = reduced(
        [
            c.start(message_id="m", message_metadata={"turn": "t1"}),
            c.start_step(),
            c.tool_input_start("1", "grep", title="Search"),
            c.tool_input_delta("1", '{"pattern":'),
            c.tool_input_delta("1", '"x"}'),
            c.tool_input_available("1", "grep", {"pattern": "x"}, title="Search"),
            c.tool_output_available("1", "a.py:1"),
            c.finish_step(),
            c.start_step(),
            c.text_start("t"),
            c.text_delta("t", "Found "),
            c.text_delta("t", "it."),
            c.text_end("t"),
            c.finish_step(),
            c.finish(finish_reason="stop", message_metadata={"usage": {"in": 1}}),
        ]
    )

    assert message == {
        "id": "m",
        "role": "assistant",
        "metadata": {"turn": "t1", "usage": {"in": 1}},
        "parts": [
            {"type": "step-start"},
            {
                "type": "tool-grep",
                "toolCallId": "1",
                "state": "output-available",
                "title": "Search",
                "input": {"pattern": "x"},
                "output": "a.py:1",
            },
            {"type": "step-start"},
            {"type": "text", "text": "Found it.", "state": "done"},
        ],
    }


def test_arguments_are_shown_while_they_stream() -> None:
    [part] = parts_of(c.tool_input_start("1", "write"), c.tool_input_delta("1", '{"path":"a","text":"hal'))

    assert part["state"] == "input-streaming"
    assert part["input"] == {"path": "a", "text": "hal"}
    assert part["rawInput"] == '{"path":"a","text":"hal'


def test_a_final_output_replaces_a_preliminary_one() -> None:
    [part] = parts_of(
        c.tool_input_available("1", "agent-coder", {}),
        c.tool_output_available("1", {"text": "so far"}, preliminary=True),
        c.tool_output_available("1", {"text": "done"}),
    )

    assert part["output"] == {"text": "done"}
    assert "preliminary" not in part


def test_a_refused_call_keeps_what_came() -> None:
    own, dynamic = parts_of(
        c.tool_input_error("1", "grep", "{broken", "no JSON"),
        c.tool_input_error("2", "mcp", {"a": 1}, "bad", dynamic=True),
    )

    assert (own["rawInput"], "input" in own) == ("{broken", False)
    assert (dynamic["input"], dynamic["toolName"]) == ({"a": 1}, "mcp")


def test_a_data_part_is_replaced_by_type_and_id_alone() -> None:
    parts = parts_of(
        c.data("plan", 1, data_id="a"),
        c.data("other", 2, data_id="a"),
        c.data("plan", 3),
        c.data("plan", 4, data_id="a"),
    )

    assert parts == [
        {"type": "data-plan", "id": "a", "data": 4},
        {"type": "data-other", "id": "a", "data": 2},
        {"type": "data-plan", "data": 3},
    ]


def test_a_transient_part_is_kept_only_where_the_server_stores_it() -> None:
    parts = parts_of(
        c.data("agentActivity", 1, data_id="a", transient=True),
        c.data("agentActivity", 2, data_id="a", transient=True),
        c.data("toast", 1, transient=True),
    )

    assert parts == [{"type": "data-agentActivity", "id": "a", "data": 2}]


def test_deltas_of_a_part_that_only_the_server_stores_are_merged_and_others_are_replaced() -> None:
    first, second = {"state": "running", "entries": {"1": {"text": "a"}}}, {"entries": {"1": {"done": 1}, "2": {}}}
    parts = parts_of(
        c.data("agentActivity", first, data_id="a", transient=True),
        c.data("agentActivity", second, data_id="a", transient=True),
        c.data("plan", first, data_id="a"),
        c.data("plan", second, data_id="a"),
    )

    merged = {"state": "running", "entries": {"1": {"text": "a", "done": 1}, "2": {}}}
    assert [part["data"] for part in parts] == [merged, second]


def test_metadata_is_merged_deeply_and_lists_are_replaced() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}

    merged = merge(base, {"a": {"c": [3], "e": None}, "d": {"f": 1}, "__proto__": {"x": 1}})

    assert merged == {"a": {"b": 1, "c": [3], "e": None}, "d": {"f": 1}}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 1}


@pytest.mark.parametrize(
    "orphan",
    [
        c.text_delta("t", "x"),
        c.text_end("t"),
        c.reasoning_delta("r", "x"),
        c.tool_input_delta("1", "{"),
        c.tool_output_available("1", None),
        c.tool_output_error("1", "x"),
        c.tool_output_denied("1"),
        c.tool_approval_request("a", "1"),
    ],
    ids=lambda chunk: chunk["type"],
)
def test_an_orphan_is_an_error(orphan: Chunk) -> None:
    with pytest.raises(OrphanChunkError):
        MessageReducer().apply(orphan)


def test_a_reused_call_id_settles_the_call_of_its_own_step() -> None:
    first = [c.tool_input_available("1", "grep", 1), c.tool_output_available("1", "one"), c.finish_step()]
    second = [c.start_step(), c.tool_input_available("1", "grep", 2), c.tool_output_available("1", "two")]

    parts = parts_of(c.start_step(), *first, *second)

    assert [part.get("output") for part in parts] == [None, "one", None, "two"]


def test_an_approval_answered_in_the_stored_message_lets_the_call_go_on() -> None:
    waiting = reduced(
        [
            c.start(message_id="m"),
            c.tool_input_available("1", "write", {}),
            c.tool_approval_request("a", "1"),
            c.finish(),
        ]
    )
    assert waiting["parts"][0]["approval"] == {"id": "a"}
    waiting["parts"][0] |= {"state": "approval-responded", "approval": {"id": "a", "approved": False}}

    StreamState.of(waiting).accept(c.tool_output_denied("1"))
    denied = MessageReducer(waiting).apply_all([c.start(message_id="m"), c.tool_output_denied("1"), c.finish()])

    assert denied["parts"][0]["state"] == "output-denied"
    assert denied["parts"][0]["approval"] == {"id": "a", "approved": False}


@given(seed=SEEDS, kept=st.floats(0, 1))
def test_a_snapshot_and_the_rest_give_the_whole_message(seed: int, kept: float) -> None:
    stream = random_stream(Random(seed))
    cut = 1 + int(kept * (len(stream) - 1))
    stored = orjson.loads(orjson.dumps(reduced(stream[:cut])))

    snapshot = snapshot_chunks(stored, transient=STORED)
    resumed = snapshot + stream[cut:]

    assert reduced(snapshot) == stored
    assert reduced(resumed) == reduced(stream)
    if cut < len(stream):
        state = StreamState()
        assert [state.accept(chunk) for chunk in resumed] == resumed


@given(seed=SEEDS, kept=st.floats(0, 1))
def test_a_stored_message_is_taken_up_where_it_stopped(seed: int, kept: float) -> None:
    stream = random_stream(Random(seed))
    cut = 1 + int(kept * (len(stream) - 1))
    stored = orjson.loads(orjson.dumps(reduced(stream[:cut])))

    taken_up = MessageReducer(stored, store_transient=STORED).apply_all(stream[cut:])

    assert taken_up == reduced(stream)


@given(seed=SEEDS)
def test_a_snapshot_is_no_longer_than_the_parts_need(seed: int) -> None:
    message = reduced(random_stream(Random(seed)))

    assert len(snapshot_chunks(message)) <= 1 + 3 * len(message["parts"])


@given(seed=SEEDS, kept=st.floats(0, 1))
def test_a_snapshot_with_an_end_is_a_whole_stream(seed: int, kept: float) -> None:
    stream = random_stream(Random(seed))
    message = reduced(stream[: 1 + int(kept * (len(stream) - 1))])

    snapshot = snapshot_chunks(message, ending=c.error("The turn was interrupted."), transient=STORED)

    state = StreamState()
    assert [state.accept(chunk) for chunk in snapshot] == snapshot
    assert state.ended
    assert reduced(snapshot) == interrupted(message)


@given(seed=SEEDS, kept=st.floats(0, 1))
def test_an_interrupted_message_has_nothing_open_and_keeps_its_text(seed: int, kept: float) -> None:
    stream = random_stream(Random(seed))
    message = reduced(stream[: 1 + int(kept * (len(stream) - 1))])

    closed = interrupted(message)

    assert not {part.get("state") for part in closed["parts"]} & {"streaming", "input-streaming", "input-available"}
    assert not any("open" in part or (part["type"] == "text" and "id" in part) for part in closed["parts"])
    assert [part.get("text") for part in closed["parts"]] == [part.get("text") for part in message["parts"]]
    assert interrupted(closed) == closed


def test_a_message_that_has_not_begun_has_no_snapshot() -> None:
    begun, ended = [c.start(message_id="m")], [c.start(message_id=""), c.error("no model")]

    assert snapshot_chunks(MessageReducer().message) == []
    assert snapshot_chunks(reduced(begun)) == begun
    assert snapshot_chunks(MessageReducer().message, ending=c.error("no model")) == ended


def test_a_long_answer_is_reduced_in_linear_time() -> None:
    reducer = MessageReducer()
    reducer.apply_all([c.start(), c.text_start("t"), c.tool_input_start("1", "write")])

    for _ in range(100_000):
        reducer.apply({"type": "text-delta", "id": "t", "delta": "word "})
        reducer.apply({"type": "tool-input-delta", "toolCallId": "1", "inputTextDelta": "[0,"})

    assert len(reducer.message["parts"][0]["text"]) == 500_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", UNSET),
        ("{", {}),
        ('{"a', {}),
        ('{"a":', {}),
        ('{"a":1,"b', {"a": 1}),
        ('{"a":-', {}),
        ('{"a":1.', {"a": 1}),
        ('{"a":12.5e', {"a": 12.5}),
        ('{"a":tr', {"a": True}),
        ('{"a":nul', {"a": None}),
        ('{"a":["x","y', {"a": ["x", "y"]}),
        ('{"a":"x\\', {"a": "x"}),
        ('{"a":"x\\u00', {"a": "x"}),
        ('{"a":"\\ud83d', {"a": ""}),
        ('{"a":"\\ud83d\\ude00', {"a": "😀"}),
        ('{"a":"\\\\ud83d', {"a": "\\ud83d"}),
        ('{"a":{"b":[1,{"c":"d"}', {"a": {"b": [1, {"c": "d"}]}}),
        ('{"a":{"__proto__":1', UNSET),
        ("[" * 5000, UNSET),
        ("nonsense", UNSET),
        ('{"a":1}}', {"a": 1}),
    ],
)
def test_growing_json_has_the_value_that_stands(text: str, value: Any) -> None:
    assert parse_partial(text) == value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(max_size=5), json_values, max_size=4), kept=st.floats(0, 1))
def test_every_prefix_of_json_has_a_value_and_the_whole_has_its_own(value: dict[str, Any], kept: float) -> None:
    text = orjson.dumps(value).decode()
    prefix = text[: max(1, int(kept * len(text)))]

    if not prefix.endswith('"__proto__"'):
        assert isinstance(parse_partial(prefix), dict)
    assert parse_partial(text) == value
