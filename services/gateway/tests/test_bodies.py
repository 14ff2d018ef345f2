from __future__ import annotations

import asyncio
import gc
import resource
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from popagent_gateway.bodies import BODY_BYTES, CHAT_BODY_BYTES, PAGE_BODY_BYTES, PARSED, Bodies
from popagent_gateway.refusing import DROP_BYTES

JSON = {"content-type": "application/json"}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    body = await request.body()
    parsed = scope.get(PARSED)
    await JSONResponse({"bytes": len(body), "is_list": isinstance(parsed, list)})(scope, receive, send)


def client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(Bodies(echo)), base_url="http://127.0.0.1")


async def post(content: bytes, headers: dict[str, str] | None = None, path: str = "/api/sessions") -> httpx2.Response:
    async with client() as http:
        return await http.post(path, content=content, headers=JSON if headers is None else headers)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b'{"a":1}x',
        b'{"a":NaN}',
        b"[Infinity]",
        b"-Infinity",
        b"'a'",
        b'{"a":"\xff"}',
        b'"\\ud800"',
        b"\x00",
        b'"a\x00b"',
        b"{a:1}",
    ],
)
async def test_what_is_not_json_is_400(body: bytes) -> None:
    answer = await post(body)

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")


@pytest.mark.parametrize("headers", [JSON, {}], ids=["not JSON", "not declared"])
async def test_who_sent_the_whole_body_is_refused_at_once_and_may_go_on(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    monkeypatch.setattr("popagent_gateway.refusing.DROP_S", 60)

    async with asyncio.timeout(20):
        answer = await post(b"{", headers)

    assert answer.status_code in (400, 415)
    assert "connection" not in answer.headers


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
async def test_hostile_nesting_is_400_and_no_crash(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"1}"
    answers = [await post(opening * 100_000), await post(opening * 100_000 + closing * 100_000)]

    assert [answer.status_code for answer in answers] == [400, 400]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"title":"a\\u0000b"}', "title"),
        (b'{"a":{"b":["x","\\u0000"]}}', "a.b.1"),
        (b'{"x\\u0000":1}', "body"),
        (b'"\\u0000"', "body"),
        (b'{"a":"\\\\u0000 and \\u0000"}', "a"),
    ],
)
async def test_nul_in_any_text_is_422_with_its_field(body: bytes, field: str) -> None:
    answer = await post(body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_backslash_before_u0000_is_ordinary_text() -> None:
    answer = await post(b'{"a":"the escape \\\\u0000"}')

    assert answer.status_code == 200


async def test_nul_in_a_query_is_422() -> None:
    async with client() as http:
        answer = await http.get("/api/sessions?cursor=a%00b")

    assert (answer.status_code, answer.json()["field"]) == (422, "query")


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/plain",
        "text/plain;application/json",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json; charset=utf-16",
        "text/json",
        "",
    ],
)
async def test_bodies_that_are_not_declared_as_json_are_415(content_type: str | None) -> None:
    answer = await post(b'{"path":"/etc/passwd"}', {} if content_type is None else {"content-type": content_type})

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
async def test_json_is_recognised_with_its_usual_parameters(content_type: str) -> None:
    answer = await post(b"[]", {"content-type": content_type})

    assert answer.json() == {"bytes": 2, "is_list": True}


async def chunked(total: int, piece: int = 64 * 1024) -> AsyncIterator[bytes]:
    sent = 0
    while sent < total:
        size = min(piece, total - sent)
        yield b" " * size
        sent += size


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/sessions", BODY_BYTES),
        ("/api/chat", CHAT_BODY_BYTES),
        ("/api/workspaces/w1/docs/page", PAGE_BODY_BYTES),
        ("/api/workspaces/w1/docs/page/x", BODY_BYTES),
    ],
)
async def test_the_limit_itself_is_accepted_and_one_byte_more_is_413(path: str, limit: int) -> None:
    async with client() as http:
        fits = await http.post(path, content=b"1" + b" " * (limit - 1), headers=JSON)
        announced = await http.post(path, content=b"1" + b" " * limit, headers=JSON)
        unannounced = await http.post(path, content=chunked(limit + 1), headers=JSON)

    assert fits.status_code == 200
    assert (announced.status_code, announced.json()["code"]) == (413, "too_large")
    assert (unannounced.status_code, unannounced.json()["code"]) == (413, "too_large")


async def test_an_endless_body_costs_no_memory() -> None:
    taken: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            taken.append(1)
            yield bytes(64 * 1024)

    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with client() as http:
        answer = await http.post("/api/chat", content=endless(), headers=JSON)
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

    assert answer.status_code == 413
    assert len(taken) <= (CHAT_BODY_BYTES + DROP_BYTES) // (64 * 1024) + 3
    assert grown_mib < 20


async def test_a_read_takes_no_body() -> None:
    async with client() as http:
        answer = await http.request("GET", "/api/sessions", content=b"{}", headers=JSON)

    assert answer.status_code == 413


async def test_a_client_that_leaves_in_mid_body_gets_no_answer_and_reaches_no_route() -> None:
    sent: list[Any] = []
    messages: list[Any] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/sessions", "query_string": b"", "headers": []}
    await Bodies(echo)(scope, receive, send)

    assert sent == []


async def test_a_compressed_body_is_refused_also_when_only_its_header_says_so() -> None:
    codings = ("gzip", "br", "identity, gzip", "x")

    answers = [await post(b"{}", {**JSON, "content-encoding": coding}) for coding in codings]
    plain = await post(b"{}", {**JSON, "content-encoding": "identity"})

    assert {answer.status_code for answer in answers} == {415}
    assert plain.status_code == 200


async def test_a_body_that_does_not_arrive_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_gateway.bodies.BODY_S", 0.05)
    monkeypatch.setattr("popagent_gateway.refusing.DROP_S", 0.05)

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with client() as http:
        answer = await http.post("/api/sessions", content=stalled(), headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (408, "request_timeout")
