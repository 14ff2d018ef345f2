"""Trying a server: each way to fail has its class and a sentence that says what to do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from popagent_models import probe as module
from popagent_models.detect import detect
from popagent_models.endpoint import AddressError, Endpoint, address, same_server
from popagent_models.probe import names_in, probe
from popagent_testing.model_server import ModelList, ModelServer, Reply

KEY = "sk-of-a-person-7f3a"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, kept from being given to others."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def at(server: ModelServer, key: str | None = None) -> Endpoint:
    return Endpoint(server.url, key)


async def test_a_server_that_answers_is_found_with_its_models_and_the_time_to_its_first_word(
    server: ModelServer,
) -> None:
    server.models = ModelList(ids=("bge-large", "a", "b"))

    first = await probe(at(server))
    preferred = await probe(at(server), preferred="b")
    gone = await probe(at(server), preferred="gone")

    assert (first.kind, first.answered_by, first.models) == ("ok", "a", ("bge-large", "a", "b"))
    assert first.latency_ms is not None
    assert [found.answered_by for found in (preferred, gone)] == ["b", "a"]
    assert {request.body["max_tokens"] for request in server.requests} == {module.MOST_TOKENS}


async def test_nobody_listening_an_unknown_host_and_plain_http_behind_https_are_told_apart(
    server: ModelServer, closed_port: int
) -> None:
    found = [
        await probe(Endpoint(url))
        for url in (
            f"http://127.0.0.1:{closed_port}/v1",
            "http://no-such-host.invalid/v1",
            f"https://127.0.0.1:{server.port}/v1",
        )
    ]

    assert [each.kind for each in found] == ["refused", "dns", "tls"]
    assert [word in each.sentence for each, word in zip(found, ("Start", "spelling", "http://"), strict=True)] == [
        True
    ] * 3
    assert server.requests == []


async def test_a_silent_server_is_left_in_time(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIST_S", 0.1)
    monkeypatch.setattr(module, "WORDS_S", 0.1)
    server.models = ModelList(delay_s=30)
    list_late = await probe(at(server))
    server.models = ModelList()
    server.script(Reply(hold=True))

    words_late = await probe(at(server))

    assert (list_late.kind, list_late.models) == ("timeout", ())
    assert (words_late.kind, words_late.models) == ("timeout", ("scripted-model",))
    assert "still be loading" in words_late.sentence


@pytest.mark.parametrize(("sent", "said"), [(None, "wants a key"), ("wrong", "refuses the key")])
async def test_a_missing_key_and_a_wrong_one_are_told_apart(server: ModelServer, sent: str | None, said: str) -> None:
    server.key = KEY

    found = await probe(at(server, sent))

    assert (found.kind, said in found.sentence) == ("unauthorized", True)
    server.key = None


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        (ModelList(raw="<html>welcome</html>"), "not-openai"),
        (ModelList(raw='{"detail": "hello"}'), "not-openai"),
        (ModelList(status=404), "not-openai"),
        (ModelList(status=307), "not-openai"),
        (ModelList(status=500), "failed"),
        (ModelList(raw='{"object": "list", "data": null}'), "no-models"),
        (ModelList(raw='{"object": "list", "data": []}'), "no-models"),
        (ModelList(ids=("text-embedding-3",)), "no-models"),
    ],
)
async def test_what_is_no_list_of_models_that_chat_is_named(server: ModelServer, listed: ModelList, kind: str) -> None:
    server.models = listed

    found = await probe(at(server))

    assert found.kind == kind
    assert found.sentence.endswith((".", "?"))
    assert server.requests == []


async def test_a_named_model_may_answer_where_nothing_is_listed(server: ModelServer) -> None:
    server.models = ModelList(status=404)

    found = await probe(at(server), model="hidden")

    assert (found.kind, found.answered_by, found.models) == ("ok", "hidden", ())


async def test_a_model_that_fails_is_told_with_the_list(server: ModelServer) -> None:
    server.script(Reply(status=402))

    found = await probe(at(server))

    assert (found.kind, found.models) == ("failed", ("scripted-model",))
    assert "no credit left" in found.sentence


async def test_a_key_does_not_follow_a_redirect(server: ModelServer) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 302 Found\r\nlocation: {server.url}/models\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    redirecting = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with redirecting:
        found = await probe(Endpoint(f"http://127.0.0.1:{redirecting.sockets[0].getsockname()[1]}/v1", KEY))

    assert (found.kind, "another address" in found.sentence) == ("not-openai", True)
    assert list(server.log) == []


async def test_detection_finds_what_answers_as_a_model_server_and_nothing_else(
    server: ModelServer, closed_port: int
) -> None:
    with ModelServer() as web, ModelServer() as empty, ModelServer() as slow:
        server.models = ModelList(fields={"owned_by": "vllm"})
        web.models = ModelList(raw="<html>")
        empty.models = ModelList(raw='{"object": "list", "data": null}')
        slow.models = ModelList(delay_s=30)
        ports = {server.port: "One", web.port: "Two", empty.port: "Three", slow.port: "Four", closed_port: "Five"}

        async with asyncio.timeout(2):
            found = await detect(ports=ports)
        avoided = await detect([server.port], ports)

    assert [(each.name, each.models) for each in found] == [("vLLM", ("scripted-model",)), ("Three", ())]
    assert [each.name for each in avoided] == ["Three"]
    assert {entry.path for entry in server.log} == {"/v1/models"}


@pytest.mark.parametrize("value", [None, "text", 5, {}, {"error": "x"}, [{"name": 5}], {"data": "x"}])
def test_what_is_no_list_has_no_names(value: object) -> None:
    assert names_in(value) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a/v1", "http://A:80/other", True),
        ("https://a/v1", "https://a:443", True),
        ("http://a/v1", "https://a/v1", False),
        ("http://a:1/v1", "http://a:2/v1", False),
        ("http://a/v1", "http://a.evil/v1", False),
    ],
)
def test_a_server_is_its_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert same_server(one, other) is same


def test_an_address_becomes_the_base_url() -> None:
    assert address(" http://h:1 ") == "http://h:1/v1"
    assert address("https://h/api/v1/chat/completions") == "https://h/api/v1"
    with pytest.raises(AddressError):
        address("http://u:p@h/v1")
