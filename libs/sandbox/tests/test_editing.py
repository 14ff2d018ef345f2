from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_sandbox.editing import edited
from popagent_sandbox.errors import TextNotFoundError


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        (b"a\nb\nc\n", "b", "x", b"a\nx\nc\n"),
        (b"a\nb\nc", "c", "x", b"a\nb\nx"),
        (b"a\nb\nc\n", "b\n", "", b"a\nc\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc", "c", "c\n", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb\r\n", "a\r\nx\r\n", b"a\r\nx\r\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
        (b"\xef\xbb\xbfa\nb\n", "a", "x", b"\xef\xbb\xbfx\nb\n"),
        (b"caf\xe9\nb\n", "b", "\u00e9", b"caf\xe9\n\xc3\xa9\n"),
        ("größe\n".encode(), "größe", "höhe", "höhe\n".encode()),
    ],
)
def test_an_exact_text_is_replaced_and_all_else_stays_to_the_byte(
    content: bytes, old: str, new: str, after: bytes
) -> None:
    assert edited(content, old, new) == after


def test_a_text_that_occurs_more_than_once_is_refused_with_its_lines_or_replaced_everywhere() -> None:
    content = b"x = 1\ny = 2\nx = 1\n\nx = 1\n"

    with pytest.raises(TextNotFoundError, match=r"occurs 3 times, at lines 1, 3, 5\. Give more"):
        edited(content, "x = 1", "x = 2")
    with pytest.raises(TextNotFoundError, match="occurs 2 times"):
        edited(b"aaa", "aa", "b")

    assert edited(content, "x = 1", "x = 2", everywhere=True) == b"x = 2\ny = 2\nx = 2\n\nx = 2\n"
    assert edited(b"aaa", "aa", "b", everywhere=True) == b"ba"


def test_a_text_that_is_not_there_is_answered_with_the_nearest_lines() -> None:
    content = b"import os\n\n\ndef total(items):\n    return sum(items)\n\n\ndef other():\n    pass\n"

    with pytest.raises(TextNotFoundError) as misspelled:
        edited(content, "def total(item):\n    return sum(item)", "x")
    with pytest.raises(TextNotFoundError) as indented:
        edited(content, "def total(items):\n  return sum(items)", "x")
    with pytest.raises(TextNotFoundError) as absent:
        edited(content, "class Zebra:", "x")

    assert "The nearest is, at line 4:\ndef total(items):\n    return sum(items)\n" in misspelled.value.message
    assert "with other white space, at line 4:\ndef total(items):\n    return sum(items)\n" in indented.value.message
    assert "nor anything like it" in absent.value.message


def test_an_edit_takes_little_time_whatever_it_is_given() -> None:
    content = b"abcd efgh ijkl\n" * 200_000
    begun = time.process_time()  # ours alone, however busy the machine is

    for old in ("abce efgh ijkl\nabcd", "a", "zzzz\n" * 20_000, "abcd efgh ijkl\n" * 20_000):
        with pytest.raises(TextNotFoundError) as refused:
            edited(content, old, "x")
        assert len(refused.value.message) < 2_000

    assert time.process_time() - begun < 5


TEXTS = st.text("ab\n", max_size=12)


@given(before=TEXTS, old=TEXTS.filter(bool), new=TEXTS, after=TEXTS, crlf=st.booleans())
def test_what_stands_around_a_replaced_text_is_untouched(
    before: str, old: str, new: str, after: str, crlf: bool
) -> None:
    whole = f"{before}{old}{after}"
    ending = "\r\n" if crlf else "\n"
    content = whole.replace("\n", ending).encode()

    try:
        result = edited(content, old, new)
    except TextNotFoundError:
        assert whole.find(old, whole.find(old) + 1) >= 0
        return

    expected = whole.replace(old, new, 1)
    if "\n" in whole:
        expected = expected.replace("\n", ending)
    assert result == expected.encode()
