from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_bus.frames import END, MORE, Frame, decode


def chunks(first: int, count: int) -> bytes:
    return b"".join(b'data: {"n":%d}\n\n' % number for number in range(first, first + count))


@given(st.integers(0, 50), st.integers(0, 20), st.sampled_from([MORE, END]))
def test_a_frame_reads_back_as_it_was(first: int, count: int, flag: str) -> None:
    frame = Frame(first, count, flag, chunks(first, count))

    assert decode(frame.encode()) == frame


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 50))
def test_the_part_that_is_not_known_yet_has_its_chunks_and_no_other(first: int, count: int, known: int) -> None:
    rest = Frame(first, count, END, chunks(first, count)).after(known)

    assert rest.first >= min(known, first + count)
    assert rest.data == chunks(rest.first, rest.count)
    assert (rest.next, rest.flag) == (first + count, END)


@given(st.integers(0, 20), st.integers(1, 40), st.integers(1, 200), st.sampled_from([b"", b"data: [DONE]\n\n"]))
def test_a_split_frame_has_every_chunk_in_order_and_ends_once(
    first: int, count: int, max_bytes: int, uncounted: bytes
) -> None:
    parts = list(Frame(first, count, END, chunks(first, count) + uncounted).split(max_bytes))

    assert b"".join(part.data for part in parts) == chunks(first, count) + uncounted
    assert [part.first for part in parts[1:]] == [part.next for part in parts[:-1]]
    assert [part.flag for part in parts] == [MORE] * (len(parts) - 1) + [END]
    assert all(len(part.data.removesuffix(uncounted)) <= max_bytes or part.count == 1 for part in parts)


@pytest.mark.parametrize("data", [b"", b"x", b"1 2\n", b"a b c\n", b"-1 1 -\n", b"1 1 -", b"1 1 - x\n", b"\xff 1 -\n"])
def test_what_is_no_frame_is_told(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode(data)
