from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from popagent_testing.streams import random_stream
from popagent_uistream import chunks as c
from popagent_uistream.chunks import UNSET, Chunk
from popagent_uistream.encode import DONE, HEARTBEAT, encode
from popagent_uistream.partial_json import parse_partial
from popagent_uistream.reducer import Message, MessageReducer, client_view, interrupted
from popagent_uistream.snapshot import snapshot_chunks
from popagent_uistream.state import StreamState
from tests.conformance.official_client import (
    OfficialClientError,
    parse_partial_texts,
    reduce_streams,
    run_live,
    validate_streams,
)
from tests.conformance.scripted_gateway import PROMPTS, scripted_gateway, serving

pytestmark = pytest.mark.node
# The page itself is built on the newest; the one before is what others use most.
versions = pytest.mark.parametrize("version", [6, pytest.param(7, marks=pytest.mark.full)])

ANY = {"provider": {"n": 1, "none": None}}
OPTIONAL_CALL: dict[str, Any] = {
    "title": "Title",
    "provider_executed": True,
    "provider_metadata": ANY,
    "tool_metadata": {"m": None},
}
EVERY_KIND: list[Chunk] = [
    c.start(message_id="m1", message_metadata={"turn": {"id": "t"}}),
    c.start_step(),
    c.reasoning_start("r", provider_metadata=ANY),
    c.reasoning_delta("r", "because", provider_metadata=ANY),
    c.reasoning_end("r", provider_metadata=ANY),
    c.tool_input_start("1", "read", **OPTIONAL_CALL),
    c.tool_input_delta("1", '{"path":"ä'),
    c.tool_input_delta("1", '"}'),
    c.tool_input_available("1", "read", {"path": "ä"}, **OPTIONAL_CALL),
    c.tool_output_available("1", {"so": "far"}, preliminary=True),
    c.tool_output_available("1", None, provider_executed=True, provider_metadata=ANY, tool_metadata={"durationMs": 12}),
    c.tool_input_available("2", "mcp", None, dynamic=True),
    c.tool_output_error("2", "failed", dynamic=True, provider_metadata=ANY, tool_metadata={"durationMs": 0}),
    c.tool_input_error("3", "read", "{not json", "The arguments are no JSON.", **OPTIONAL_CALL),
    c.tool_input_error("4", "mcp", None, "refused", dynamic=True),
    c.finish_step(),
    c.start_step(),
    c.source_url("s1", "https://example.org/a", title="A", provider_metadata=ANY),
    c.source_document("s2", "application/pdf", "Doc", filename="d.pdf", provider_metadata=ANY),
    c.file("data:text/plain;base64,eA==", "text/plain", provider_metadata=ANY),
    c.data("plan", None, data_id="p"),
    c.data("plan", {"steps": [1, None]}, data_id="p"),
    c.data("agentActivity", [], transient=True),
    c.text_start("t", provider_metadata=ANY),
    c.text_delta("t", "data: hello\n\n🙂", provider_metadata=ANY),
    c.text_end("t", provider_metadata=ANY),
    c.tool_input_available("5", "write", {}),
    c.tool_approval_request("a5", "5"),
    c.finish_step(),
    c.message_metadata({"turn": {"usage": 1}}),
    c.message_metadata(None),
    c.finish(finish_reason="tool-calls", message_metadata={"turn": {"total": 2}}),
]


def reduced(sent: list[Chunk], message: Message | None = None) -> Message:
    return client_view(MessageReducer(copy.deepcopy(message)).apply_all(sent))


def as_version(message: Message, version: int) -> Message:
    """The message as that client holds it: since 7 the arguments of a call that failed lie in `input`."""
    if version >= 7:
        for part in message["parts"]:
            if part.get("state") == "output-error" and "rawInput" in part and "input" not in part:
                part["input"] = part.pop("rawInput")
    return message


def text_of(sent: list[Chunk]) -> str:
    return (HEARTBEAT.join(map(encode, sent)) + DONE).decode()


def kinds(sent: list[Chunk]) -> set[str]:
    return {"data" if chunk["type"].startswith("data-") else chunk["type"] for chunk in sent}


@versions
def test_every_kind_of_chunk_is_accepted_and_reduced_alike(tmp_path: Path, version: int) -> None:
    answered = copy.deepcopy(reduced(EVERY_KIND))
    answered["parts"][-1] |= {
        "state": "approval-responded",
        "approval": {"id": "a5", "approved": False, "reason": "no"},
    }
    denied = [c.start(message_id="m1"), c.tool_output_denied("5"), c.finish()]
    ends = {
        "abort": [c.start(), *StreamState.of(answered | {"parts": []}).end(c.abort(reason="stopped"))],
        "error": [c.start(), c.error("The model does not answer.")],
        "reasons": [c.start(), c.finish(finish_reason="content-filter")],
    }
    for name, stream in {"whole": EVERY_KIND, "denied": denied, **ends}.items():
        (tmp_path / name).write_text(text_of(stream))
    (tmp_path / "answered").write_bytes(orjson.dumps(answered))

    counts = validate_streams(tmp_path / "whole", *(tmp_path / name for name in ends), version=version)
    validate_streams(tmp_path / "denied", message=tmp_path / "answered", version=version)
    official = reduce_streams(
        [{"stream": text_of(EVERY_KIND)}, {"stream": text_of(denied), "message": answered}], tmp_path, version
    )

    assert counts[str(tmp_path / "whole")] == len(EVERY_KIND)
    assert official[0] == {"message": as_version(reduced(EVERY_KIND), version), "valid": None}
    assert official[1] == {"message": reduced(denied, answered), "valid": None}
    builders = {
        name for name, value in vars(c).items() if callable(value) and getattr(value, "__module__", "") == c.__name__
    }
    sent = kinds([*EVERY_KIND, *denied, *(chunk for stream in ends.values() for chunk in stream)])
    assert {kind.replace("-", "_") for kind in sent} == builders - {
        "Unset",
        "ChunkError",
        "json_value",
        "refuse_forbidden_keys",
    } - {name for name in builders if name.startswith("_")}


@versions
def test_random_streams_and_their_prefixes_are_reduced_alike(tmp_path: Path, version: int) -> None:
    probe = c.message_metadata({"probe": True})  # the official reader announces a step only with the next change
    cases: list[list[Chunk]] = []
    for seed in range(40):
        random = Random(seed)
        stream = random_stream(random, moves=random.randint(1, 50))
        cut = random.randint(1, len(stream) - 1)
        snapshot = snapshot_chunks(MessageReducer().apply_all(stream[:cut]))
        ended = stream[:cut] + StreamState.of(MessageReducer().apply_all(stream[:cut])).end(c.abort())
        whole = [*stream[:-1], probe, stream[-1]]
        cases += [whole, [*stream[:cut], probe], [*snapshot, probe], [*snapshot, *whole[cut:]], [*ended[:-1], probe]]

    official = reduce_streams([{"stream": text_of(case)} for case in cases], tmp_path, version)

    for case, answer in zip(cases, official, strict=True):
        assert answer == {"message": as_version(reduced(case), version), "valid": None}
    for number in range(0, len(cases), 5):
        whole, prefix, snapshot, resumed, ended = official[number : number + 5]
        assert snapshot == prefix
        assert resumed == whole
        closed = interrupted(MessageReducer().apply_all(cases[number + 1]))
        assert ended == {"message": as_version(closed, version), "valid": None}


@versions
def test_growing_arguments_are_read_alike(tmp_path: Path, version: int) -> None:
    value = {
        "path": 'src/ä "b"\\c\n🙂',
        "list": [1, 20, {"a": [], "b": {}}, "x", None, True, False, 2.5],
        "number": 1234.5,
        "negative": -7,
        "deep": {"er": {"est": [["z"]]}},
        "": "",
    }
    texts = [
        text[:cut]
        for text in (orjson.dumps(value).decode(), orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
        for cut in range(len(text) + 1)
    ]

    official = parse_partial_texts(texts, tmp_path, version)

    ours = [{} if (parsed := parse_partial(text)) is UNSET else {"value": parsed} for text in texts]
    assert ours == official


@versions
def test_what_we_refuse_the_official_client_refuses_too(tmp_path: Path, version: int) -> None:
    flawed: list[Chunk] = [
        {"type": "text-start", "id": "t", "providerMetadata": None},
        {"type": "tool-output-available", "toolCallId": "1"},
        {"type": "data-x", "data": 1, "id": None},
        {"type": "data-x", "data": {"__proto__": 1}},
        {"type": "ping"},
        {"type": "text-delta", "id": "nobody", "delta": "x"},
        {"type": "reasoning-end", "id": "nobody"},
        {"type": "tool-input-delta", "toolCallId": "nobody", "inputTextDelta": "{"},
        {"type": "tool-output-error", "toolCallId": "nobody", "errorText": "x"},
        {"type": "tool-approval-request", "toolCallId": "nobody", "approvalId": "a"},
    ]
    if version == 6:  # a newer one takes any reason
        flawed.append({"type": "finish", "finishReason": "interrupted"})

    answers = reduce_streams(
        [{"stream": text_of([c.start(), chunk, c.finish()])} for chunk in flawed], tmp_path, version
    )

    assert [list(answer) for answer in answers] == [["error"]] * len(flawed)


@versions
async def test_a_server_of_these_parts_passes_the_state_machine_of_the_official_client(version: int) -> None:
    async with serving(scripted_gateway("secret")) as base_url:
        report = await asyncio.to_thread(run_live, base_url, "secret", prompts=PROMPTS, version=version)

    assert report == {
        "checks": [
            "strict",
            "send, regenerate, send again, 204",
            "204 for an unknown id",
            "409 and resume in mid-turn by two readers",
            "stop by the server",
            "stop by the client alone",
            "cut and resume",
            "error",
        ],
        "leftOut": [],
    }


@pytest.mark.parametrize(
    ("flaw", "named"),
    [
        (lambda event: event.replace(b'"finishReason":"stop"', b'"finishReason":null'), "strict: chunk"),
        (lambda event: event.replace(b'"finish-step"', b'"ping"'), "strict: chunk"),
        (lambda event: b"" if b'"text-end"' in event else event, "send, regenerate"),
    ],
    ids=["a null", "an unknown chunk", "an open part"],
)
async def test_a_flaw_of_the_server_is_found(flaw: Callable[[bytes], bytes], named: str) -> None:
    async with serving(scripted_gateway("secret", flaw)) as base_url:
        with pytest.raises(OfficialClientError, match=named):
            await asyncio.to_thread(run_live, base_url, "secret", prompts=PROMPTS)
