"""Reading a decision that is cut anywhere."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popagent_local.model_server.stream import ArgumentsGrew, DecisionReader, JsonValue, ToolNamed

# Every plane, and what is special in JSON; lone surrogates cannot be text.
TEXT = st.text(
    st.characters(exclude_categories=("Cs",)) | st.sampled_from('"\\/{}[],:\n\t\u2028\U0001f600\x00'), max_size=60
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
CUTS = st.lists(st.integers(min_value=0, max_value=400), max_size=12)
SPACING = st.sampled_from([(",", ":", None), (", ", ": ", None), (",", ": ", 2)])
# No deadline: the machine may be busy with other tests.
quick = settings(max_examples=80, deadline=None)


def written(value: Any, spacing: tuple[str, str, int | None], ascii_only: bool) -> str:
    item, key, indent = spacing
    return json.dumps(value, separators=(item, key), indent=indent, ensure_ascii=ascii_only)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


def read(reader: DecisionReader, parts: list[str]) -> tuple[str | None, str]:
    events = [event for part in parts for event in reader.feed(part)]
    named = [event.name for event in events if isinstance(event, ToolNamed)]
    assert len(named) <= 1
    return (named[0] if named else None), "".join(e.text for e in events if isinstance(e, ArgumentsGrew))


@quick
@given(arguments=JSON_VALUES, name=TEXT.filter(lambda name: name != "none"), cuts=CUTS, spacing=SPACING)
def test_a_call_is_the_same_however_it_is_cut(
    arguments: Any, name: str, cuts: list[int], spacing: tuple[str, str, int | None]
) -> None:
    for ascii_only in (True, False):
        reader = DecisionReader("none")
        text = written({"tool": name, "arguments": arguments}, spacing, ascii_only)

        tool, read_arguments = read(reader, pieces(text, cuts))

        assert (tool, json.loads(read_arguments), reader.complete) == (name, arguments, True)


@quick
@given(arguments=JSON_VALUES, kept=st.integers(min_value=0, max_value=400))
def test_of_a_call_that_breaks_off_the_beginning_is_there(arguments: Any, kept: int) -> None:
    reader = DecisionReader("none")
    whole = json.dumps({"tool": "read", "arguments": arguments})

    tool, read_arguments = read(reader, [whole[:-1][:kept]])

    assert json.dumps(arguments).startswith(read_arguments)
    assert tool in (None, "read")
    assert not reader.complete


def test_every_letter_of_the_arguments_comes_out_at_once() -> None:
    reader = DecisionReader("none")
    reader.feed('{"tool": "read", "arguments": {"p": "')

    grown = [reader.feed(letter) for letter in "abc"]

    assert grown == [[ArgumentsGrew("a")], [ArgumentsGrew("b")], [ArgumentsGrew("c")]]


def test_a_tool_is_known_before_its_arguments() -> None:
    reader = DecisionReader("none")

    assert reader.feed('{"tool": "read"') == [ToolNamed("read")]
    assert reader.tool == "read"


@quick
@given(cuts=CUTS, spacing=SPACING)
def test_no_tool_is_no_call(cuts: list[int], spacing: tuple[str, str, int | None]) -> None:
    reader = DecisionReader("none")

    assert read(reader, pieces(written({"tool": "none"}, spacing, True), cuts)) == (None, "")
    assert reader.complete


@pytest.mark.parametrize("value", ["17", "-1.5e3", "true", "null", '"a}b"', "[1, {}]", '{"a": "]"}'])
def test_a_value_knows_where_it_ends(value: str) -> None:
    reader = JsonValue()

    assert reader.feed(f"{value}}}rest") == (value, "}rest")
    assert reader.closed
