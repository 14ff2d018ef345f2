from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_testing.streams import random_stream
from popagent_uistream import chunks as c
from popagent_uistream.chunks import Chunk
from popagent_uistream.reducer import MessageReducer
from popagent_uistream.state import IllegalChunkError, StreamState

SEEDS = st.integers(0, 2**32)
BASE: list[Chunk] = [c.start(), c.start_step()]
CALL: list[Chunk] = [*BASE, c.tool_input_start("1", "grep")]
READY: list[Chunk] = [*BASE, c.tool_input_available("1", "grep", {})]
SETTLED: list[Chunk] = [*READY, c.tool_output_available("1", "x")]


def state_after(sent: list[Chunk]) -> StreamState:
    state = StreamState()
    for chunk in sent:
        state.accept(chunk)
    return state


@given(seed=SEEDS)
def test_every_legal_stream_is_accepted(seed: int) -> None:
    assert state_after(random_stream(Random(seed))).ended


@pytest.mark.parametrize(
    ("sent", "illegal"),
    [
        ([], c.text_start("t")),
        ([], c.finish()),
        ([], c.start_step()),
        (BASE, c.start()),
        (BASE, c.start_step()),
        ([c.start()], c.finish_step()),
        (BASE, c.text_delta("t", "x")),
        (BASE, c.text_end("t")),
        (BASE, c.reasoning_delta("r", "x")),
        (BASE, c.reasoning_end("r")),
        ([*BASE, c.text_start("t")], c.text_start("t")),
        ([*BASE, c.text_start("t")], c.reasoning_delta("t", "x")),
        ([*BASE, c.text_start("t")], c.finish_step()),
        ([c.start(), c.text_start("t")], c.start_step()),
        ([c.start(), c.text_start("t")], c.finish()),
        ([c.start(), c.reasoning_start("t")], c.abort()),
        ([c.start(), c.text_start("t")], c.error("x")),
        ([*BASE, c.text_start("t"), c.text_end("t")], c.text_delta("t", "x")),
        (BASE, c.finish()),
        (BASE, c.abort()),
        (BASE, c.error("x")),
        (BASE, c.tool_input_delta("1", "{")),
        (BASE, c.tool_output_available("1", None)),
        (BASE, c.tool_output_error("1", "x")),
        (BASE, c.tool_output_denied("1")),
        (BASE, c.tool_approval_request("a", "1")),
        (CALL, c.tool_input_start("1", "grep")),
        (CALL, c.tool_output_available("1", None)),
        (CALL, c.tool_approval_request("a", "1")),
        (CALL, c.finish_step()),
        (CALL, c.tool_input_available("1", "list", {})),
        (CALL, c.tool_input_available("1", "grep", {}, dynamic=True)),
        (READY, c.tool_input_available("1", "grep", {})),
        (READY, c.tool_input_delta("1", "{")),
        (READY, c.tool_input_error("1", "grep", {}, "x")),
        (READY, c.tool_output_denied("1")),
        ([*READY, c.finish_step()], c.finish()),
        ([*READY, c.tool_output_available("1", "x", preliminary=True), c.finish_step()], c.finish()),
        ([*READY, c.tool_approval_request("a", "1")], c.tool_output_available("1", "x")),
        (SETTLED, c.tool_output_available("1", "y")),
        (SETTLED, c.tool_output_error("1", "y")),
        (SETTLED, c.tool_input_start("1", "grep")),
        ([c.start(), c.finish()], c.finish()),
        ([c.start(), c.abort()], c.data("x", 1)),
        ([c.start(), c.error("x")], c.text_start("t")),
        (BASE, {"type": "reset-step"}),
        (BASE, {"type": "text-pause", "id": "t"}),
        (BASE, {"type": "ping"}),
        (BASE, {"type": "tool-approval-response", "approvalId": "a", "approved": True}),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else str(len(value)),
)
def test_an_illegal_move_is_refused_and_changes_nothing(sent: list[Chunk], illegal: Chunk) -> None:
    state = state_after(sent)

    with pytest.raises(IllegalChunkError):
        state.accept(illegal)

    assert state.close_open() == state_after(sent).close_open()


def test_a_settled_call_id_may_be_used_again_in_a_later_step() -> None:
    later = [c.finish_step(), c.start_step(), c.tool_input_start("1", "list")]

    state = state_after([*SETTLED, *later])

    assert state.close_open() == [c.tool_output_error("1", "interrupted"), c.finish_step()]


def test_an_error_may_come_before_anything_else() -> None:
    assert state_after([c.error("no model")]).ended


def test_the_end_closes_what_is_open_in_order() -> None:
    waiting = [c.tool_input_available("2", "write", {}), c.tool_approval_request("a", "2")]
    state = state_after([*CALL, *waiting, c.reasoning_start("r"), c.text_start("t")])

    closing = state.end(c.abort(reason="stopped"))

    assert closing == [
        c.reasoning_end("r"),
        c.text_end("t"),
        c.tool_output_error("1", "interrupted"),
        c.finish_step(),
        c.abort(reason="stopped"),
    ]
    assert state.close_open() == []


@given(seed=SEEDS, kept=st.floats(0, 1))
def test_any_prefix_can_be_ended_and_is_then_closed(seed: int, kept: float) -> None:
    stream = random_stream(Random(seed))
    prefix = stream[: 1 + int(kept * (len(stream) - 2))]
    state = state_after(prefix)

    whole = prefix + state.end(c.abort())

    assert state_after(whole).ended
    assert "streaming" not in str([part.get("state") for part in MessageReducer().apply_all(whole)["parts"]])


@given(seed=SEEDS, kept=st.floats(0, 1))
def test_the_state_can_be_read_from_the_message(seed: int, kept: float) -> None:
    stream = random_stream(Random(seed))
    cut = 1 + int(kept * (len(stream) - 2))
    state = StreamState.of(MessageReducer().apply_all(stream[:cut]))

    for chunk in stream[cut:]:
        state.accept(chunk)

    assert state.ended
