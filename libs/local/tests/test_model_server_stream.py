"""Reading a decision that is cut anywhere."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popagent_local.model_server.stream import (
    AnswerGrew,
    ArgumentsGrew,
    DecisionReader,
    RawValue,
    StringDecoder,
    ToolNamed,
)

# Every plane, and what is special in JSON; lone surrogates cannot be text.
TEXT = st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from('"\\/\n\t\u2028\U0001f600\x00'), max_size=60)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
# No deadline: the machine may be busy with other tests.
quick = settings(max_examples=60, deadline=None)
CUTS = st.lists(st.integers(min_value=0, max_value=400), max_size=12)
SPACING = st.sampled_from([(",", ":", None), (", ", ": ", None), (",", ": ", 2)])


def written(value: Any, spacing: tuple[str, str, int | None], ascii_only: bool) -> str:
    item, key, indent = spacing
    return json.dumps(value, separators=(item, key), indent=indent, ensure_ascii=ascii_only)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


def read(reader: DecisionReader, parts: list[str]) -> tuple[str | None, str, str]:
    events = [event for part in parts for event in reader.feed(part)]
    named = [event.name for event in events if isinstance(event, ToolNamed)]
    arguments = "".join(event.text for event in events if isinstance(event, ArgumentsGrew))
    answer = "".join(event.text for event in events if isinstance(event, AnswerGrew))
    assert len(named) <= 1
    return (named[0] if named else None), arguments, answer


@quick
@given(answer=TEXT, cuts=CUTS, spacing=SPACING, ascii_only=st.booleans())
@example(answer="\U0001f600", cuts=list(range(60)), spacing=(", ", ": ", None), ascii_only=True)
def test_an_answer_is_the_same_however_it_is_cut(
    answer: str, cuts: list[int], spacing: tuple[str, str, int | None], ascii_only: bool
) -> None:
    reader = DecisionReader("none")
    text = written({"tool": "none", "answer": answer}, spacing, ascii_only)

    tool, arguments, read_answer = read(reader, pieces(text, cuts))

    assert (tool, arguments, read_answer) == (None, "", answer)
    assert reader.complete


@quick
@given(arguments=JSON_VALUES, name=TEXT.filter(lambda name: name != "none"), cuts=CUTS, spacing=SPACING)
def test_arguments_are_the_same_json_however_they_are_cut(
    arguments: Any, name: str, cuts: list[int], spacing: tuple[str, str, int | None]
) -> None:
    reader = DecisionReader("none")
    text = written({"tool": name, "arguments": arguments}, spacing, ascii_only=True)

    tool, read_arguments, answer = read(reader, pieces(text, cuts))

    assert (tool, json.loads(read_arguments), answer) == (name, arguments, "")
    assert reader.complete


@quick
@given(answer=st.dictionaries(TEXT, JSON_VALUES, max_size=4), cuts=CUTS)
def test_a_json_answer_is_passed_on_as_it_is_written(answer: dict[str, Any], cuts: list[int]) -> None:
    reader = DecisionReader("none", raw_answer=True)

    _, _, read_answer = read(reader, pieces(json.dumps({"tool": "none", "answer": answer}), cuts))

    assert json.loads(read_answer) == answer


@quick
@given(answer=TEXT.filter(bool), kept=st.integers(min_value=0, max_value=400))
def test_of_a_text_that_breaks_off_the_beginning_is_there(answer: str, kept: int) -> None:
    reader = DecisionReader("none")
    text = json.dumps({"tool": "none", "answer": answer})[:-1][:kept]

    _, _, read_answer = read(reader, [text])

    assert answer.startswith(read_answer)
    assert not reader.complete


def test_every_letter_of_an_answer_comes_out_at_once() -> None:
    reader = DecisionReader("none")
    reader.feed('{"tool": "none", "answer": "')

    grown = [reader.feed(letter) for letter in "abc"]

    assert grown == [[AnswerGrew("a")], [AnswerGrew("b")], [AnswerGrew("c")]]


def test_a_tool_is_known_before_its_arguments() -> None:
    reader = DecisionReader("none")

    assert reader.feed('{"tool": "read"') == [ToolNamed("read")]
    assert reader.tool == "read"


@pytest.mark.parametrize(
    ("inside", "meant"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d!", "\ufffd!"),
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\ud83d\n", "\ufffd\n"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\u00e9\"\\\/\b\f\n\r\t", 'é"\\/\b\f\n\r\t'),
        (r"\uzzzz", "\ufffd"),
    ],
)
def test_escapes_and_halves_of_pairs(inside: str, meant: str) -> None:
    decoder = StringDecoder()

    out = "".join(decoder.feed(letter)[0] for letter in inside + '"')

    assert out == meant
    assert decoder.closed


@pytest.mark.parametrize("value", ["17", "-1.5e3", "true", "null", '"a}b"', "[1, {}]", '{"a": "]"}'])
def test_a_value_knows_where_it_ends(value: str) -> None:
    reader = RawValue()

    assert reader.feed(f"{value}}}rest") == (value, "}rest")
    assert reader.closed
