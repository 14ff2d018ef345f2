"""Arguments that are nearly right: what is put right, and what is told to the model instead."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from libs.agent.tests.looking import look, outputs
from popagent_agent.argument_repair import lenient_object, without_trailing_commas
from popagent_agent.run_context import RunContext
from popagent_agent.toolset import ToolArgumentsError, parse_arguments, tool
from popagent_kit import json


class Place(BaseModel):
    """Where something is."""

    path: str
    line: int = 1


@tool("mark", access="read")
async def mark(run: RunContext, place: Place, labels: list[str], note: str = "", weight: float = 1.0) -> str:
    """Mark a place."""
    return f"{place.path}:{place.line} {labels} {note!r} {weight:g}"


PLACE = {"path": "a.py", "line": 2}


@pytest.mark.parametrize(
    "written",
    [
        '{"at": "x", "times": 2,}',
        '{"at": "x", "times": 2\n , }',
        '```json\n{"at": "x", "times": 2}\n```',
        '"{\\"at\\": \\"x\\", \\"times\\": 2}"',
        '{"arguments": {"at": "x", "times": 2}}',
        '{"input": "{\\"at\\": \\"x\\", \\"times\\": 2}"}',
        '{"at": "x", "times": "2"}',
        '{"at": {"at": "x"}, "times": {"value": 2}}',
        '{"parameters": {"at": {"value": "x"}, "times": "2",},}',
    ],
)
async def test_arguments_that_can_only_be_meant_one_way_are_carried_out_and_shown_as_meant(
    kit: Any, written: str
) -> None:
    turn = kit.turn(kit.calls(("look", written)), kit.says("ok"), tools=[look])

    result = await turn.run()

    assert outputs(result) == ["saw x saw x "]
    [call] = [part for part in result.parts if part["type"] == "tool-look"]
    assert call["input"] in ({"at": "x", "times": 2}, {"at": "x", "times": "2"})


@pytest.mark.parametrize(
    ("given", "gives"),
    [
        ({"place": '{"path": "a.py", "line": 2}', "labels": '["x", "y"]'}, "a.py:2 ['x', 'y'] '' 1"),
        ({"place": PLACE, "labels": [], "note": 5, "weight": "0.5"}, "a.py:2 [] '5' 0.5"),
        ({"place": {"path": "a.py", "line": {"line": 2}}, "labels": [1, "y"]}, "a.py:2 ['1', 'y'] '' 1"),
        ({"place": PLACE, "labels": [{"value": "x"}], "note": None}, "a.py:2 ['x'] '' 1"),
    ],
)
async def test_values_inside_of_arguments_are_put_right_too(kit: Any, given: dict[str, Any], gives: str) -> None:
    turn = kit.turn(kit.calls(("mark", given)), kit.says("ok"), tools=[mark])

    result = await turn.run()

    assert outputs(result) == [gives]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"place": "a.py", "labels": []}, "place: Input should be a valid dictionary"),
        ({"place": PLACE, "labels": "x, y"}, "labels: Input should be a valid list"),
        ({"place": PLACE, "labels": [], "note": {"first": "x", "value": "y"}}, "note: Input should be a valid string"),
        ({"place": PLACE, "labels": [], "note": {"other": "x"}}, "note: Input should be a valid string"),
        ({"place": PLACE, "labels": [], "note": True}, "note: Input should be a valid string"),
        ({"place": PLACE, "labels": [], "weight": "heavy"}, "weight: Input should be a valid number"),
        ({"first": {"place": PLACE}, "second": 1}, "place: Field required"),
        ({"place": {"line": "2", "other": 1}, "labels": []}, "place.path: Field required"),
    ],
)
async def test_what_may_mean_several_things_is_told_to_the_model(kit: Any, given: dict[str, Any], told: str) -> None:
    turn = kit.turn(kit.calls(("mark", given)), kit.says("ok"), tools=[mark])

    result = await turn.run()

    assert told in outputs(result)[0]
    assert [part["input"] for part in result.parts if part["type"] == "tool-mark"] == [given]


@pytest.mark.parametrize("written", ['{"at": "x"', '{"at": "x"}{"at": "x"}', "{'at': 'x'}", "at=x", '"x"', "[1,]", "5"])
def test_what_is_no_object_stays_an_error(written: str) -> None:
    with pytest.raises(ToolArgumentsError):
        parse_arguments(written)


def test_commas_inside_of_texts_stay() -> None:
    written = '{"a": "1,}", "b": ["\\",]", 2, ], }'

    assert json.loads(without_trailing_commas(written)) == {"a": "1,}", "b": ['",]', 2]}


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(st.none() | st.booleans() | st.text(max_size=12) | st.integers(-9, 9), st.lists, max_leaves=4),
        max_size=3,
    )
)
def test_what_is_right_is_never_changed(value: dict[str, Any]) -> None:
    assert lenient_object(json.dumps(value).decode()) == value


@pytest.mark.timeout(5)
@pytest.mark.parametrize("piece", ["[", '{"a":', ",", '"', "\\", ", ", "```json\n", '",'])
def test_hostile_texts_cost_little(piece: str) -> None:
    began_at = time.process_time()

    assert lenient_object("{" + piece * 200_000) is None
    assert lenient_object(piece * 200_000) is None
    assert time.process_time() - began_at < 3
