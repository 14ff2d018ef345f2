from __future__ import annotations

from collections.abc import Mapping

import httpx2
import pytest
from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from popagent_gateway.door import Door
from popagent_gateway.settings import GatewaySettings
from popagent_kit.errors import ConfigurationError
from popagent_kit.shared_settings import is_loopback

KEY = "a key of Ünusual length".replace("Ü", "U")
HERE = "http://127.0.0.1:8420"
PAGES = ("/", "/chat/some-session", "/assets/index-a1.js", "/favicon.svg", "/apis")


def settings(**values: object) -> GatewaySettings:
    return GatewaySettings.model_validate(values)


def client(app: ASGIApp | None = None, *, base: str = HERE, **values: object) -> httpx2.AsyncClient:
    inside = app or JSONResponse({"inside": True})
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(Door(inside, settings(**values))), base_url=base)


@pytest.mark.parametrize(
    "path", ["/api/sessions", "/api/nothing", "/api", "/API/sessions", "/./api/models", "/favicon.svg/..%2fapi"]
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-popagent-key": ""},
        {"x-popagent-key": "wrong"},
        {"x-popagent-key": KEY[:-1]},
        {"x-popagent-key": KEY + "="},
        {"x-popagent-key": KEY + " "},
        {"x-popagent-key": KEY.upper()},
        {"authorization": f"Bearer {KEY}"},
        {"cookie": f"x-popagent-key={KEY}"},
        {"x-api-key": KEY},
    ],
)
async def test_whatever_is_not_the_key_gets_the_same_401_everywhere(path: str, headers: Mapping[str, str]) -> None:
    async with client(api_key=KEY) as http:
        answer = await http.get(path, headers=headers, params={"key": KEY, "x-popagent-key": KEY})
        plain = await http.get("/api/models")

    assert answer.status_code == 401
    assert answer.content == plain.content
    assert set(answer.headers) == set(plain.headers)
    assert answer.json() == {
        "error": "The key is missing or wrong. Send it in the header x-popagent-key.",
        "code": "unauthorized",
    }


async def test_two_keys_are_no_key() -> None:
    async with client(api_key=KEY) as http:
        answer = await http.get("/api/models", headers=[("x-popagent-key", KEY), ("x-popagent-key", KEY)])

    assert answer.status_code == 401


async def test_the_key_opens_the_door() -> None:
    async with client(api_key=KEY) as http:
        answer = await http.get("/api/models", headers={"x-popagent-key": KEY})

    assert answer.json() == {"inside": True}


async def test_pages_are_public_to_read_and_nothing_else_is() -> None:
    async with client(api_key=KEY) as http:
        reads = [await http.request(method, path) for path in PAGES for method in ("GET", "HEAD")]
        writes = [await http.request(method, path) for path in PAGES for method in ("POST", "PUT", "DELETE", "OPTIONS")]

    assert {answer.status_code for answer in reads} == {200}
    assert {answer.status_code for answer in writes} == {401}


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8420",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1, evil.example",
        "127.0.0.2",
        "2130706433",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::1",
        "127.0.0.1:port",
        "",
        " ",
    ],
)
async def test_a_foreign_host_is_misdirected_even_with_the_key(host: str) -> None:
    async with client(api_key=KEY) as http:
        answer = await http.get("/api/models", headers={"host": host, "x-popagent-key": KEY})
        page = await http.get("/", headers={"host": host})

    assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")
    assert page.status_code == 421


async def test_two_hosts_or_none_are_misdirected() -> None:
    async def call(headers: list[tuple[bytes, bytes]]) -> int:
        sent: list[int] = []
        scope = {"type": "http", "method": "GET", "path": "/api/models", "query_string": b"", "headers": headers}

        async def receive() -> dict[str, object]:
            return {"type": "http.request"}

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                sent.append(int(str(message["status"])))

        await Door(JSONResponse({}), settings())(scope, receive, send)  # type: ignore[arg-type]
        return sent[0]

    statuses = [await call([]), await call([(b"host", b"localhost"), (b"host", b"evil.example")])]

    assert statuses == [421, 421]


@pytest.mark.parametrize("host", ["127.0.0.1:8420", "localhost", "LOCALHOST:9", "[::1]:8420", "localhost."])
async def test_names_of_this_machine_are_ours_on_any_port(host: str) -> None:
    async with client() as http:
        answer = await http.get("/api/models", headers={"host": host})

    assert answer.status_code == 200


async def test_the_public_url_is_ours_too_and_its_origin_may_write() -> None:
    async with client(public_url="https://Agents.example.org/") as http:
        headers = {
            "host": "agents.example.org",
            "origin": "https://agents.example.org",
            "sec-fetch-site": "same-origin",
        }
        answer = await http.post("/api/chat", headers=headers)
        other = await http.post("/api/chat", headers={**headers, "origin": "https://other.example.org"})

    assert (answer.status_code, other.status_code) == (200, 403)


async def test_behind_a_wildcard_every_address_is_ours_and_no_foreign_name() -> None:
    async with client(host="0.0.0.0", api_key=KEY) as http:
        by_host = {
            host: (await http.get("/", headers={"host": host})).status_code
            for host in ("192.168.7.7:8420", "[fd00::7]", "rebound.example")
        }

    assert by_host == {"192.168.7.7:8420": 200, "[fd00::7]": 200, "rebound.example": 421}


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://localhost:8420"},
        {"origin": "file://"},
        {"origin": "127.0.0.1:8420"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:8420.evil.example"},
        {"origin": "chrome-extension://127.0.0.1:8420"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": HERE},
    ],
)
async def test_requests_of_other_pages_are_refused(method: str, headers: Mapping[str, str]) -> None:
    async with client() as http:
        answer = await http.request(method, "/api/chat", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert not any(name.startswith("access-control") for name in answer.headers)


async def test_our_own_page_and_programs_without_a_page_are_let_in() -> None:
    async with client() as http:
        own = await http.post("/api/chat", headers={"origin": HERE, "sec-fetch-site": "same-origin"})
        typed = await http.get("/api/chat", headers={"sec-fetch-site": "none"})
        link = await http.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})

        form = await http.post("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})

    assert [own.status_code, typed.status_code, link.status_code, form.status_code] == [200, 200, 200, 403]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "popagent.lan"])
def test_an_open_door_without_a_key_does_not_start(host: str) -> None:
    with pytest.raises(ConfigurationError, match="POPAGENT_API_KEY"):
        GatewaySettings.load({"POPAGENT_HOST": host}, {})


@pytest.mark.parametrize("key", [" padded", "padded ", "two\nlines", "ключ"])
def test_a_key_that_fits_no_header_does_not_start(key: str) -> None:
    with pytest.raises(ValidationError):
        settings(api_key=key)


def test_loopback_is_what_only_this_machine_reaches() -> None:
    reachable = {
        host: is_loopback(host)
        for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "10.0.0.1", "::", "x")
    }

    assert [host for host, alone in reachable.items() if alone] == [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "[::1]",
        "localhost",
    ]
