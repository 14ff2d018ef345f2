"""Trying a server: each way to fail has its class and a sentence that says what to do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from popagent_models import probe as module
from popagent_models.catalogue import fetch_models
from popagent_models.detect import detect
from popagent_models.endpoint import AddressError, Endpoint, address, same_server
from popagent_models.probe import names_in, probe
from popagent_models.upstream import Upstream
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


async def test_a_server_cannot_tell_the_key_back_as_a_model(server: ModelServer) -> None:
    server.models = ModelList(ids=("m", f"x/{KEY}", KEY))

    found = await probe(at(server, KEY))
    upstream = Upstream(at(server, KEY), connect_timeout_s=5)
    listed = await fetch_models(upstream)
    await upstream.close()
    server.models = ModelList(ids=("ollama/m",))
    word = await probe(at(server, "ollama"))

    assert (found.models, listed.models, word.models) == (("m",), ("m",), ("ollama/m",))


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


@pytest.mark.parametrize(
    ("url", "why"),
    [
        *((f"http://{user}@127.0.0.1:9/v1", "user name or password") for user in ("u:p", "u", ":p", "", ":")),
        *((f"http://{host}:9", "no host") for host in ("..", ".", "a..b", "a" * 64, "a" * 300, "a." * 127 + "aa")),
        ("http://" + "ü" * 64, "no host"),
    ],
)
def test_an_address_holds_no_password_and_a_host_that_can_exist(url: str, why: str) -> None:
    with pytest.raises(AddressError, match=why):
        address(url)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
        ),
        *("１２７.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "0", "[::]"),
    ],
)
def test_this_machine_is_known_by_every_spelling(host: str) -> None:
    assert Endpoint(address(f"http://{host}:9")).is_loopback


@pytest.mark.parametrize(
    "host", ["localhost.example", "128.0.0.1", "2147483648", "[2001:db8::1]", "münchen.example", "a_b", "fa"]
)
def test_another_machine_is_not_taken_for_this_one(host: str) -> None:
    assert not Endpoint(address(f"http://{host}:9")).is_loopback


CLOUDS = ("169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "１６９.254.169.254", "[fd00:ec2::254]")


@pytest.mark.parametrize("host", [*CLOUDS, "[::ffff:a9fe:a9fe]", "[fe80::1]", "100.100.100.200"])
def test_where_clouds_give_credentials_no_model_server_is(host: str) -> None:
    with pytest.raises(AddressError, match="clouds give credentials"):
        address(f"http://{host}/v1")


async def test_a_name_that_leads_where_clouds_give_credentials_is_not_asked(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A resolver of ours: such a name cannot be looked up here.
    async def resolve(*_: object) -> list[dict[str, object]]:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        return [{"hostname": "m", "host": "169.254.169.254", "port": port, "family": 2, "proto": 6, "flags": 0}]

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", resolve)
    monkeypatch.setenv("NO_PROXY", "*")

    found = await probe(Endpoint("http://model.test/v1", "the-key"))

    assert found.kind == "dns"
    assert "clouds give credentials" in found.sentence
