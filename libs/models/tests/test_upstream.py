from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from popagent_models.endpoint import endpoint
from popagent_models.errors import ModelConfigurationError
from popagent_models.upstream import Body, Upstream
from popagent_testing.model_server import ModelServer, Reply

FAR = "http://model.example/v1"


class Proxy:
    """An HTTP proxy that answers everything itself and keeps the heads of what it was asked."""

    def __init__(self) -> None:
        self.heads: list[list[str]] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    made = Proxy()
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as listening:
        made.address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield made


async def read(body: Body) -> bytes:
    """Return all of it."""
    found = b""
    while data := await body.next():
        found += data
    body.close()
    return found


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_a_far_server_is_asked_through_the_proxy_of_the_environment(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    monkeypatch.setenv(name.lower(), f"{scheme}{'user:word@' if scheme else ''}{proxy.address}")
    upstream = Upstream(endpoint(FAR, "our-own-key"), connect_timeout_s=5)

    answer = await read(await upstream.get("/models", 5))

    (head,) = proxy.heads
    assert answer == b"{}"
    assert head[0] == f"GET {FAR}/models HTTP/1.1"
    assert "authorization: Bearer our-own-key" in head
    assert ("Proxy-Authorization: Basic dXNlcjp3b3Jk" in head) == bool(scheme)
    await upstream.close()


async def test_no_proxy_comes_between_us_and_this_machine(
    proxy: Proxy, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    upstream = Upstream(endpoint(server.url), connect_timeout_s=5)

    answer = await read(await upstream.get("/models", 5))

    assert b"scripted" in answer
    assert proxy.heads == []
    await upstream.close()


async def test_a_proxy_of_another_kind_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    upstream = Upstream(endpoint(FAR), connect_timeout_s=5)

    with pytest.raises(ModelConfigurationError, match="HTTP_PROXY"):
        await upstream.get("/models", 5)


async def test_a_key_that_no_header_can_hold_names_the_setting(server: ModelServer) -> None:
    upstream = Upstream(endpoint(server.url, "a key\r\nx-more: yes"), connect_timeout_s=5)

    with pytest.raises(ModelConfigurationError, match="POPAGENT_MODEL_KEY"):
        await upstream.get("/models", 5)

    assert server.requests == []
    await upstream.close()


async def test_closing_cuts_off_what_is_in_use(server: ModelServer) -> None:
    server.script(Reply(text="one two three", hold=True, after=1))
    upstream = Upstream(endpoint(server.url), connect_timeout_s=5)
    body = await upstream.open_stream(b'{"model": "m", "stream": true, "messages": []}', 5)
    await body.next()

    await upstream.close()

    await server.until(lambda state: state.requests[0].outcome == "client-left")
    body.close()
