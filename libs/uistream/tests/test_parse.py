from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_testing.streams import random_stream
from popagent_uistream.encode import DONE, HEARTBEAT, encode, encode_all
from popagent_uistream.parse import MalformedStreamError, StreamParser, parse

SEEDS = st.integers(0, 2**32)


@given(seed=SEEDS, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_chunks_come_out_whatever_the_pieces(seed: int, cuts: list[int]) -> None:
    stream = random_stream(Random(seed), moves=15)
    data = b"\xef\xbb\xbf" + HEARTBEAT.join(map(encode, stream)) + DONE
    parser = StreamParser()

    parsed = []
    position = piece = 0
    while position < len(data):
        size = cuts[piece % len(cuts)]
        parsed += parser.feed(data[position : position + size])
        position, piece = position + size, piece + 1

    assert parsed == stream
    assert parser.done


def test_names_ids_and_carriage_returns_do_not_matter() -> None:
    data = b'id: 7\r\nevent: x\r\ndata: {"type":\r\ndata:"start"}\r\n\r\n:note\r\n\r\n'

    assert parse(data) == [{"type": "start"}]


def test_an_unfinished_event_gives_nothing() -> None:
    parser = StreamParser()

    assert parser.feed(b'data: {"type":"start"}\n') == []
    assert not parser.done
    assert parser.feed(b"\n") == [{"type": "start"}]


@pytest.mark.parametrize("payload", [b"{", b"[1]", b"{}", b'{"type":1}', b"\xff", b"null"])
def test_what_is_no_chunk_is_an_error(payload: bytes) -> None:
    with pytest.raises(MalformedStreamError):
        parse(b"data: " + payload + b"\n\n")


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 30, b"data: xxxxxxxxxx\n"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    parser = StreamParser(max_event_bytes=1000)

    with pytest.raises(MalformedStreamError, match="1000"):
        [parser.feed(piece) for _ in range(200)]


def test_a_large_event_in_small_pieces_is_read_in_linear_time() -> None:
    event = encode({"type": "data-x", "data": "y" * 2_000_000})
    parser = StreamParser()

    pieces = [parser.feed(event[at : at + 100]) for at in range(0, len(event), 100)]

    assert [len(found) for found in pieces if found] == [1]


def test_many_events_in_one_piece_are_read() -> None:
    stream = [{"type": "text-delta", "id": "t", "delta": str(n)} for n in range(50_000)]

    assert parse(encode_all(stream)) == stream
