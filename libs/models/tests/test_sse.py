from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popagent_models.errors import ModelProviderError
from popagent_models.sse import LONGEST_BODY_BYTES, BodyReader


def read(*pieces: bytes) -> tuple[list[dict[str, object]], BodyReader]:
    reader = BodyReader()
    found = [payload for piece in pieces for payload in reader.feed(piece)]
    return found + reader.end(), reader


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'data: {"a":1}\n\ndata: {"a":2}\n\ndata: [DONE]\n\n', [{"a": 1}, {"a": 2}]),
        (b'data:{"a":1}\r\n\r\ndata: {"a":2}\r\n\r\n', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}', [{"a": 1}]),
        (b'\n  {\n "a": 1\n}\n', [{"a": 1}]),
        (b'{"a":1}data: [DONE]\n\n', [{"a": 1}]),
        (b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        (b'\xef\xbb\xbfdata: {"a":1}\n\n', [{"a": 1}]),
        (b'\xef\xbb\xbf{"a":1}', [{"a": 1}]),
        (b': hi\nevent: message\nid: 4\nretry: 10\ndata: {"a":1}\n\n', [{"a": 1}]),
        (b'data: hello from a router\n\ndata: [DONE]\n\ndata: {"a":1}\n\ndata: [DONE]\n\n', [{"a": 1}]),
        (b'data: {"a":1}', [{"a": 1}]),
        (b'data: {"a":1}\n\n{"error":{"code":500}}\n', [{"a": 1}, {"error": {"code": 500}}]),
        (b'data: {"a":1}\n\nerror: {"code":500}\n', [{"a": 1}, {"error": {"code": 500}}]),
        (b"data: [1,2]\n\ndata: null\n\ndata: 7\n\n", []),
        (b"<html><body>Bad gateway</body></html>", []),
        (b"", []),
        (b"\n\n\n", []),
    ],
)
def test_objects_are_found_in_every_kind_of_body(body: bytes, expected: list[dict[str, object]]) -> None:
    whole, _ = read(body)
    by_bytes, _ = read(*(body[at : at + 1] for at in range(len(body))))

    assert whole == by_bytes == expected


def test_unparsable_lines_are_counted() -> None:
    _, reader = read(b'data: {"a":\n\ndata: {"a":1}\n\ndata: {oops}\n\n')

    assert (reader.objects, reader.skipped) == (1, 2)


def test_nesting_without_end_is_a_skipped_line() -> None:
    found, reader = read(b"data: " + b'{"a":' * 50_000 + b"\n\n", b"data: " + b"[" * 50_000 + b"\\u\n\n")

    assert (found, reader.skipped) == ([], 2)


def test_a_json_body_nested_without_end_gives_nothing() -> None:
    found, reader = read(b'{"a":' * 50_000)

    assert (found, reader.skipped) == ([], 1)


def test_half_a_surrogate_pair_does_not_lose_the_line() -> None:
    found, _ = read(b'data: {"a":"\\ud83d"}\n\n')

    assert found == [{"a": "\ud83d"}]


def test_a_line_without_end_is_refused() -> None:
    reader = BodyReader()

    for _ in range(41):
        reader.feed(b"data: " + b"x" * 100_000)

    with pytest.raises(ModelProviderError, match="4 MiB"):
        reader.feed(b"x" * 100_000)


def test_a_body_without_end_is_refused() -> None:
    reader = BodyReader()
    comment = b":" + b"x" * (1024 * 1024 - 2) + b"\n"
    for _ in range(LONGEST_BODY_BYTES // len(comment)):
        reader.feed(comment)

    with pytest.raises(ModelProviderError, match="64 MiB"):
        reader.feed(comment)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), min_size=1), st.data())
def test_any_split_gives_the_same_objects(payloads: list[dict[str, str]], data: st.DataObject) -> None:
    body = b"".join(b"data: " + orjson.dumps(payload) + b"\n\n" for payload in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))

    found, _ = read(*(body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)))

    assert found == payloads


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_body_crashes_the_reader(body: bytes) -> None:
    found, _ = read(body[:7], body[7:])

    assert all(isinstance(payload, dict) for payload in found)
