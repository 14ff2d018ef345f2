"""SearXNG asked over HTTP, whatever it answers; nothing but the address of the operator is ever asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

import popagent_web.health as health_module
import popagent_web.searxng as searxng_module
from popagent_kit.errors import ConfigurationError
from popagent_kit.remedies import NOT_SET_UP, is_trouble
from popagent_testing.search_server import SearchServer, found, http, page
from popagent_web.health import SearchCheck
from popagent_web.search import NothingListensError, SearchFailedError, Wanted
from popagent_web.searxng import SearXNG
from popagent_web.settings import SearchSettings

Connect = Callable[[str], SearXNG]


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with SearchServer() as running:
        yield running


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    made: list[SearXNG] = []

    def connected(url: str) -> SearXNG:
        made.append(SearXNG(url))
        return made[-1]

    yield connected
    for each in made:
        await each.close()


async def refusal(searxng: SearXNG) -> str:
    with pytest.raises(SearchFailedError) as failed:
        await searxng.search(Wanted("heron"))
    return failed.value.message


async def test_a_search_says_what_was_asked_and_nothing_about_who_asks(server: SearchServer, connect: Connect) -> None:
    server.answer = found(page(1), page(2))

    pages = (await connect(f"{server.url}/").search(Wanted("a&b=c #d/ü +1", "news", "week", 3))).pages

    assert server.asked == [
        {"q": "a&b=c #d/ü +1", "categories": "news", "time_range": "week", "pageno": "3", "format": "json"}
    ]
    assert [each.url for each in pages] == ["https://example.org/1", "https://example.org/2"]
    names = {line.partition(":")[0].lower() for line in server.heads[0].strip().split("\r\n")[1:]}
    assert names == {"host", "user-agent", "accept-encoding", "accept", "connection"}


async def test_an_instance_may_stand_below_a_path(server: SearchServer, connect: Connect) -> None:
    searxng = connect(f"{server.url}/searx/")

    await searxng.search(Wanted("heron"))

    assert server.heads[0].startswith("GET /searx/search?q=heron&")


ODD: dict[str, tuple[bytes, str]] = {
    "another site": (http("<!doctype html><title>Welcome</title>"), "what is not JSON: SEARXNG_URL is not the address"),
    "another program": (http('{"items": []}', kind="application/json"), "no list of results"),
    "too many": (http("", "429 TOO MANY REQUESTS"), "Set server.limiter to false in its settings.yml"),
    "a login": (http("", "401 UNAUTHORIZED"), "wants a login"),
    "a wrong path": (http("", "404 NOT FOUND"), "without /search"),
    "broken": (http("", "500 INTERNAL SERVER ERROR"), r"failed \(500\). Its own log says why"),
    "a redirect": (http("", "302 FOUND", headers="location: http://169.254.169.254/\r\n"), "redirect, which is not"),
    "no HTTP": (b"hello\r\n\r\n", "is not HTTP"),
    "hangs up": (b"", "broke the connection off"),
    "too long": (http(b" " * 3_000_000, kind="application/json"), "more than 2,048 kB"),
    "cut": (b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{}", "broke the connection off"),
    "compressed": (http(b"\x1f\x8b" + b"x" * 99, headers="content-encoding: gzip\r\n"), "what is not JSON"),
}


@pytest.mark.parametrize("kind", ODD)
async def test_whatever_is_wrong_is_told_with_what_to_do(kind: str, server: SearchServer, connect: Connect) -> None:
    server.answer, words = ODD[kind]
    searxng = connect(server.url)

    with pytest.raises(SearchFailedError, match=words) as failed:
        await searxng.search(Wanted("heron"))

    assert len(set(server.heads)) == 1
    assert "heron" not in failed.value.message
    assert str(server.port) in failed.value.message


async def test_an_instance_without_json_is_told_by_the_name_of_its_setting(
    server: SearchServer, connect: Connect
) -> None:
    server.gives_json = False
    searxng = connect(server.url)

    told = await refusal(searxng)
    with pytest.raises(SearchFailedError) as looked:
        await searxng.look()

    assert "Add json to search.formats in its settings.yml" in told
    assert looked.value.message == told


async def test_silence_ends_in_time(server: SearchServer, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searxng_module, "TIMEOUT_S", 0.05)
    server.answer = None

    assert "did not answer within 0.05 s" in await refusal(connect(server.url))


async def test_nobody_there_is_told_from_somebody_who_fails(connect: Connect) -> None:
    async with SearchServer() as gone:
        pass

    with pytest.raises(NothingListensError, match=r"is not to be reached\. Start it, or correct SEARXNG_URL"):
        await connect(gone.url).search(Wanted("heron"))


async def test_a_name_that_leads_where_clouds_give_credentials_is_not_asked(
    server: SearchServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A resolver of ours: such a name cannot be looked up here.
    async def resolve(*_: object) -> list[dict[str, object]]:
        return [
            {
                "hostname": "searx.test",
                "host": "169.254.169.254",
                "port": server.port,
                "family": 2,
                "proto": 6,
                "flags": 0,
            }
        ]

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", resolve)

    told = await refusal(connect(f"http://searx.test:{server.port}"))

    assert "an address that it may not have" in told


@pytest.mark.parametrize(
    "url",
    [
        *("searx.example", "ftp://searx.example", "file:///etc", "http://", "http://u:p@searx.example", "http://a b"),
        *("http://169.254.169.254", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]", "http://0.0.0.0:8080"),
        *("http://searx.example/?q=1", "http://searx.example/#x", "gopher://searx.example", "http://224.0.0.1"),
    ],
)
def test_a_setting_that_names_no_server_stops_the_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match="SEARXNG_URL"):
        SearchSettings.load({"SEARXNG_URL": url}, {})


def test_one_is_looked_for_at_the_usual_place_until_the_operator_names_another() -> None:
    usual, named = (SearchSettings.load({"SEARXNG_URL": url}, {}) for url in ("", "http://searxng:8080/a"))

    assert (usual.url, usual.is_given) == ("http://127.0.0.1:8889", False)
    assert (named.url, named.is_given) == ("http://searxng:8080/a", True)


async def test_health_tells_where_searches_go_and_asks_no_engine(server: SearchServer, connect: Connect) -> None:
    check = SearchCheck(connect(server.url), is_given=True)

    told = [await check() for _ in range(3)]

    assert told == [f"SearXNG at 127.0.0.1:{server.port}"] * 3
    assert (server.looks, server.asked) == (1, [])


async def test_health_sees_when_it_goes_and_when_it_comes_back(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_module, "WELL_FOR_S", 0)
    monkeypatch.setattr(health_module, "UNWELL_FOR_S", 0)
    async with SearchServer() as server:
        check = SearchCheck(connect(server.url), is_given=True)
        before = await check()

    with pytest.raises(SearchFailedError, match="is not to be reached") as away:
        await check()
    async with SearchServer(port=server.port):
        assert await check() == before

    assert is_trouble(away.value.message)


async def test_nothing_at_the_usual_place_is_no_trouble_but_a_wrong_setting_there_is(
    server: SearchServer, connect: Connect
) -> None:
    async with SearchServer() as gone:
        pass
    server.gives_json = False

    with pytest.raises(SearchFailedError) as nothing:
        await SearchCheck(connect(gone.url), is_given=False)()
    with pytest.raises(SearchFailedError) as wrong:
        await SearchCheck(connect(server.url), is_given=False)()

    assert nothing.value.message == f"{NOT_SET_UP}: no SearXNG at 127.0.0.1:{gone.port}"
    assert not is_trouble(nothing.value.message)
    assert is_trouble(wrong.value.message)


async def test_health_does_not_wait_for_one_that_is_silent(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_module, "WAIT_S", 0.05)
    silent = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with silent:
        port = silent.sockets[0].getsockname()[1]
        check = SearchCheck(connect(f"http://127.0.0.1:{port}"), is_given=True)

        with pytest.raises(SearchFailedError, match="has not answered yet"):
            await check()
        await check.close()
