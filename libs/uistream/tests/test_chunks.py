from __future__ import annotations

from typing import Any

import pytest

from popagent_uistream import chunks
from popagent_uistream.chunks import ChunkError
from popagent_uistream.encode import DONE, HEADERS, HEARTBEAT, encode, encode_all
from popagent_uistream.parse import parse


def test_a_field_that_is_not_given_is_absent() -> None:
    built = [
        chunks.start(),
        chunks.tool_input_start("c", "grep"),
        chunks.data("plan", 1),
        chunks.finish(),
        chunks.abort(),
        chunks.source_url("s", "https://example.org"),
    ]

    assert built == [
        {"type": "start"},
        {"type": "tool-input-start", "toolCallId": "c", "toolName": "grep"},
        {"type": "data-plan", "data": 1},
        {"type": "finish"},
        {"type": "abort"},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
    ]


def test_a_required_unknown_field_is_present_even_when_null() -> None:
    built = [
        chunks.tool_input_available("c", "grep", None),
        chunks.tool_input_error("c", "grep", None, "bad"),
        chunks.tool_output_available("c", None),
        chunks.data("plan", None),
        chunks.message_metadata(None),
    ]

    names = ["input", "input", "output", "data", "messageMetadata"]

    assert [chunk[name] for chunk, name in zip(built, names, strict=True)] == [None] * 5
    assert all(b"null" in encode(chunk) for chunk in built)


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        (chunks.start, {"message_id": None}),
        (chunks.start, {"message_metadata": None}),
        (chunks.finish, {"finish_reason": None}),
        (chunks.finish, {"finish_reason": "interrupted"}),
        (chunks.abort, {"reason": None}),
        (chunks.tool_input_start, {"tool_call_id": "c", "tool_name": "t", "title": None}),
        (chunks.data, {"name": "x", "value": 1, "data_id": None}),
        (chunks.data, {"name": "", "value": 1}),
        (chunks.text_start, {"part_id": "t", "provider_metadata": {"openai": "flat"}}),
        (chunks.text_delta, {"part_id": "t", "delta": None}),
        (chunks.message_metadata, {"message_metadata": "text"}),
    ],
)
def test_what_the_client_would_reject_is_refused(build: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ChunkError):
        build(**arguments)


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {"a": [float("inf")]},
        2**64,
        {1: "x"},
        {"a": {"__proto__": 1}},
        {"constructor": {"prototype": 1}},
        deep(300),
        b"bytes",
        {1, 2},
    ],
)
def test_a_value_that_cannot_travel_is_refused(value: Any) -> None:
    with pytest.raises(ChunkError):
        chunks.tool_output_available("c", value)


def test_every_value_that_is_accepted_can_be_encoded() -> None:
    value = {"deep": deep(chunks.MAX_DEPTH - 1), "big": 2**63, "low": -(2**63), "tuple": (1, 2), "constructor": 1}

    chunk = chunks.tool_output_available("c", value)

    assert parse(encode(chunk)) == [chunk]


def test_text_that_is_no_unicode_is_repaired_and_halves_of_a_pair_joined() -> None:
    chunk = chunks.text_delta("t", "a\ud83d\ude00b\ud83dc\x00d")

    assert chunk["delta"] == "a😀b\ufffdc\ufffdd"
    assert parse(encode(chunk)) == [chunk]


def test_the_chunk_does_not_share_what_the_caller_may_change() -> None:
    output = {"items": [1]}
    chunk = chunks.tool_output_available("c", output)

    output["items"].append(2)

    assert chunk["output"] == {"items": [1]}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), {"a": [None, {"b": float("nan")}]}])
def test_the_encoder_refuses_not_a_number(value: Any) -> None:
    with pytest.raises(ChunkError):
        encode({"type": "data-x", "data": value})


def test_the_encoder_refuses_what_is_not_json() -> None:
    with pytest.raises(ChunkError, match="data-x"):
        encode({"type": "data-x", "data": object()})


def test_events_are_framed_as_the_protocol_says() -> None:
    framed = encode_all([chunks.start(message_id="m"), chunks.text_delta("t", "a\n\nb")]) + HEARTBEAT + DONE

    assert framed == (
        b'data: {"type":"start","messageId":"m"}\n\n'
        b'data: {"type":"text-delta","id":"t","delta":"a\\n\\nb"}\n\n'
        b": ping\n\ndata: [DONE]\n\n"
    )
    assert HEADERS["x-vercel-ai-ui-message-stream"] == "v1"
