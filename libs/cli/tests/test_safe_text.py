from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popagent_cli.printing import fit, width
from popagent_cli.safe_text import SafeText, safe, safe_json
from popagent_kit import json

NASTY = st.text(
    alphabet=st.sampled_from("ab \n\t\r\x1b[]0;m\\\x07\x9b\x9c\x9d\x90\x7f\x00\u202e\u2066é家?HJ"), max_size=60
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x90q#0\x9cafter", "after"),
        ("\x1bPq\x1b\\after", "after"),
        ("\x1b(Btext", "text"),
        ("\x1bctext", "text"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("a\bb\x7fc\x00d", "abcd"),
        ("left\u202eright", "leftright"),
        ("\x1b[31\nnext", "\nnext"),
        ("家 — é", "家 — é"),
    ],
)
def test_nothing_but_text_is_left(text: str, shown: str) -> None:
    assert safe(text) == shown


@settings(max_examples=300, deadline=None)
@given(NASTY, st.lists(st.integers(0, 60), max_size=5))
def test_pieces_are_made_safe_like_the_whole(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})

    stream = SafeText()
    pieces = [stream.feed(text[start:end]) for start, end in itertools.pairwise(places)]

    shown = "".join(pieces)
    assert shown == safe(text)
    assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf"} and char not in "\n\t"]


def test_a_sequence_without_an_end_does_not_swallow_an_answer() -> None:
    shown = safe("\x1b]0;" + "x" * 10_000)

    assert len(shown) > 5_000


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_safe_json_means_the_same(text: str) -> None:
    line = json.dumps({"text": text}).decode()

    assert json.loads(safe_json(line)) == {"text": text}
    assert not [char for char in safe_json(line) if "\x7f" <= char <= "\x9f"]


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab家é\u0301", max_size=30), st.integers(1, 20))
def test_a_fitted_text_never_takes_more_columns(text: str, columns: int) -> None:
    assert width(fit(text, columns)) <= columns
