from __future__ import annotations

import asyncio
import socket

import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_gateway.bodies import BODY_BYTES
from popagent_gateway.headers import API_ANSWER
from popagent_gateway.http_protocol import FRAMING_BYTES, HEAD_BYTES
from popagent_gateway.server import DoorServer
from popagent_gateway.wiring import Gateway
from popagent_kit.errors import ConfigurationError

from .conftest import Served, make_settings, own_health, serve

KEY = "the-key-of-this-test"


async def say(port: int, request: bytes) -> tuple[int, bytes]:
    """Send raw bytes and return the status and all that came back until the server fell silent or hung up."""
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        body = await reader.readexactly(length)
        writer.close()
    return int(head.split(b" ")[1]), body


KEY_HEADERS = [
    (b"x-popagent-key: " + KEY.encode(), 200),
    (b"X-Popagent-Key:" + KEY.encode(), 200),
    (b"x-popagent-key: " + KEY.encode() + b"\r\nx-popagent-key: " + KEY.encode(), 401),
    (b"x-popagent-key: " + KEY.encode() + b"\x01", 400),
    (b"x-popagent-key: " + KEY.encode() + b"\xff", 401),
    (b"x-popagent-key: " + KEY.encode() + b" x", 401),
    (b"x-popagent-key : " + KEY.encode(), 400),
    (b"x-popagent-key:", 401),
]
ODD_REQUESTS = [
    (b"GET /api/models HTTP/1.1\r\n\r\n", 421),
    (b"GET http://localhost/favicon.svg HTTP/1.1\r\nhost: evil.example\r\n\r\n", 421),
    (b"GET //favicon.svg HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    (b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    (b"GET /static/../popagent_gateway/door.py HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    (b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n", 400),
    (b"nonsense\r\n\r\n", 400),
    (b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n", 400),
    (b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", 400),
    (b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999\r\n\r\n", 413),
    (
        b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n",
        400,
    ),
    (
        b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n"
        b"1\r\n{\r\n0\r\n\r\n",
        400,
    ),
    (b"GET /api/models HTTP/1.1\r\nhost: localhost\r\nx: a\r\n b: c\r\n\r\n", 400),
    (
        b"GET /api/events?topics=turns HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-fetch-site: cross-site\r\n\r\n",
        403,
    ),
]


async def test_the_key_on_the_wire(bus: Bus, pool: Pool) -> None:
    gateway = Gateway(make_settings(api_key=KEY), bus, pool, own_health)
    server, task = await serve(gateway, make_settings(port=0))
    start = b"GET /api/openapi.json HTTP/1.1\r\nhost: localhost\r\n"

    answers = [await say(server.port, start + headers + b"\r\n\r\n") for headers, _ in KEY_HEADERS]
    server.ask_to_exit()
    await task

    assert [status for status, _ in answers] == [status for _, status in KEY_HEADERS]


async def test_odd_requests_on_the_wire_are_refused_by_a_status_below_500(served: Served) -> None:
    answers = [await say(served.server.port, request) for request, _ in ODD_REQUESTS]

    assert [status for status, _ in answers] == [status for _, status in ODD_REQUESTS]


async def test_a_chunked_body_one_byte_over_the_limit_is_413(served: Served) -> None:
    head = (
        b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    body = piece * (BODY_BYTES // 0x10000) + b"1\r\n \r\n0\r\n\r\n"

    status, answer = await say(served.server.port, head + body)

    assert status == 413
    assert b"too_large" in answer


async def test_a_head_that_is_larger_than_any_request_needs_is_431(served: Served) -> None:
    start = b"GET /api/models HTTP/1.1\r\nhost: localhost\r\n"
    heads = [
        start + b"x: " + b"y" * HEAD_BYTES + b"\r\n\r\n",
        start + b"x: " + b"y" * (4 * HEAD_BYTES),  # and no end of it
        start + b"".join(b"x%d: y\r\n" % number for number in range(HEAD_BYTES // 8)) + b"\r\n",
        b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 10_000 + b"\r\n\r\n",
    ]

    answers = [await say(served.server.port, head) for head in heads]

    assert [status for status, _ in answers] == [431] * len(heads)
    assert all(b"malformed_request" in body for _, body in answers)


async def test_a_body_has_one_framing_and_its_trailers_say_nothing(bus: Bus, pool: Pool) -> None:
    gateway = Gateway(make_settings(api_key=KEY), bus, pool, own_health)
    server, task = await serve(gateway, make_settings(port=0))
    start = b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    chunked = start + b"transfer-encoding: chunked\r\n\r\n"
    key = b"x-popagent-key: " + KEY.encode()
    requests = [
        (start + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
        (chunked + b"2\r\n{}\r\n0\r\n" + key + b"\r\n\r\n", 401),
        (chunked + b"2\r\n{}\r\n0\r\nx: " + b"y" * FRAMING_BYTES * 2, 401),
        (b"GET http://evil.example/api/models HTTP/1.1\r\nhost: localhost\r\n" + key + b"\r\n\r\n", 421),
        (b"GET http://localhost/api/openapi.json HTTP/1.1\r\nhost: localhost\r\n" + key + b"\r\n\r\n", 200),
    ]

    answers = [await say(server.port, request) for request, _ in requests]
    server.ask_to_exit()
    await task

    assert [status for status, _ in answers] == [status for _, status in requests]


@pytest.mark.parametrize("sent", [b"nonsense\r\n\r\n", b"GET /nothing HTTP/1.1\r\nhost: evil.example\r\n\r\n"])
async def test_what_is_no_request_is_answered_with_the_headers_of_every_answer(served: Served, sent: bytes) -> None:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        writer.close()

    lines = set(head.split("\r\n"))
    assert {f"{name}: {value}".lower() for name, value in API_ANSWER.items()} <= lines


async def test_large_requests_that_arrive_at_once_are_no_large_heads(served: Served) -> None:
    body = b'{"title": "' + b"x" * 2 * HEAD_BYTES + b'"}'
    one = (
        b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(body)
    ) + body

    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(one * 5 + one.replace(b"content-type", b"connection: close\r\ncontent-type"))
        answers = await reader.read()
        writer.close()

    assert answers.count(b"HTTP/1.1 422") == 6
    assert answers.count(b"title must have between 1 and 200 characters") == 6


async def test_a_body_that_is_all_framing_is_refused(served: Served) -> None:
    head = (
        b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )

    status, body = await say(served.server.port, head + b"2;" + b"x" * FRAMING_BYTES * 16)

    assert (status, b"malformed_request" in body) == (400, True)


async def test_a_head_that_does_not_end_is_408_and_a_silent_connection_is_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_gateway.http_protocol.HEAD_S", 0.1)

    status, _ = await say(served.server.port, b"GET /api/models HTTP/1.1\r\nhost: loc")
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        silence = await reader.read()
        writer.close()

    assert (status, silence) == (408, b"")


async def test_who_hangs_up_behind_a_large_body_still_reads_why(served: Served) -> None:
    head = b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
    body = b" " * (4 * BODY_BYTES)

    status, answer = await say(served.server.port, head + b"content-length: %d\r\n\r\n" % len(body) + body)

    assert (status, b"too_large" in answer) == (413, True)


async def test_a_taken_port_is_told_in_words(bus: Bus, pool: Pool) -> None:
    gateway = Gateway(make_settings(), bus, pool, own_health)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        server = DoorServer(gateway.app, make_settings(port=port), gateway.closing)

        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port}"):
            await server.serve_until_asked()


async def test_an_idle_server_wakes_about_once_a_second(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: list[int] = []
    original = served.server.on_tick

    async def count(counter: int) -> bool:
        ticks.append(counter)
        return await original(counter)

    monkeypatch.setattr(served.server, "on_tick", count)
    await asyncio.sleep(1.2)

    assert 1 <= len(ticks) <= 2
