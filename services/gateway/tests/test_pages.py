from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_gateway.door import is_page
from popagent_gateway.headers import PAGE_POLICY
from popagent_gateway.wiring import Gateway

from .conftest import HERE, make_settings, own_health

SCRIPT = b"console.log('popagent');" * 100


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What the build leaves behind: a document, an icon, and assets with and without their packed doubles."""
    files = {
        "index.html": b"<!doctype html><title>popagent</title>",
        "favicon.svg": b"<svg/>",
        "assets/index-a1.js": SCRIPT,
        "assets/index-a1.js.br": b"packed by brotli",
        "assets/index-a1.js.gz": gzip.compress(SCRIPT),
        "assets/small-b2.css": b"a{}",
        "assets/notes.txt": b"of a type that no page has",
        "assets/.hidden.js": b"no asset",
        ".vite/manifest.json": b"{}",
        "secret.json": b"{}",
    }
    for name, content in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return tmp_path


@pytest.fixture
async def http(bus: Bus, pool: Pool, built: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """A stranger: the door has a key, and this client does not send it."""
    gateway = Gateway(make_settings(api_key="a key"), bus, pool, own_health, built)
    headers = {"accept-encoding": "identity"}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(gateway.app), base_url=HERE, headers=headers
    ) as client:
        yield client


@pytest.mark.parametrize(
    "address",
    ["/", "/chat/0190", "/chat/0190/", "/observe/traces/a1?span=b2", "/settings/models", "/no/such", "/apiary", "/a.b"],
)
async def test_every_address_of_the_page_is_the_same_document(http: httpx2.AsyncClient, address: str) -> None:
    page = await http.get(address)
    head = await http.head(address)

    assert (page.status_code, page.text) == (200, "<!doctype html><title>popagent</title>")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["content-security-policy"] == PAGE_POLICY
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", page.headers["etag"])


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/api",
            "/api/",
            "/api/nothing",
            "/API/sessions",
            "/Api",
            "//api/sessions",
            "/./api/models",
            "/x/../api/models",
        ),
        *("/%61pi/sessions", "/assets/..%2fapi/sessions", "/\\api", "/a%0ab", "/a%00b", "/chat//x"),
    ],
)
async def test_what_could_be_taken_for_the_api_is_no_page(http: httpx2.AsyncClient, path: str) -> None:
    answer = await http.get(httpx2.URL(HERE, raw_path=path.encode()))

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/json"


async def test_a_page_takes_nothing_in(http: httpx2.AsyncClient) -> None:
    strangers = [await http.request(method, "/chat/x") for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS")]
    known = await http.post("/chat/x", headers={"x-popagent-key": "a key"})

    assert {answer.status_code for answer in strangers} == {401}
    assert (known.status_code, known.headers["allow"]) == (405, "GET, HEAD")


async def test_a_document_that_did_not_change_is_not_sent_again(http: httpx2.AsyncClient, built: Path) -> None:
    first = await http.get("/chat/a")
    tag = first.headers["etag"]
    again = await http.get("/chat/b", headers={"if-none-match": f'"other", W/{tag}'})
    (built / "index.html").write_text("<!doctype html><title>newer</title>", encoding="utf-8")
    newer = await http.get("/chat/a", headers={"if-none-match": tag})

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    # A browser takes the headers of a 304 over.
    assert again.headers["content-security-policy"] == PAGE_POLICY
    assert (newer.status_code, newer.headers["etag"] != tag) == (200, True)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("GZIP", "gzip"),
        ("br; q=0.000, gzip;q=0", None),
        ("identity", None),
        ("", None),
        ("brotli", None),
    ],
)
async def test_an_asset_is_sent_as_small_as_the_client_takes_it(
    http: httpx2.AsyncClient, built: Path, accepted: str, coding: str | None
) -> None:
    async with http.stream("GET", "/assets/index-a1.js", headers={"accept-encoding": accepted}) as answer:
        sent = b"".join([part async for part in answer.aiter_raw()])

    suffix = {"br": ".br", "gzip": ".gz", None: ""}[coding]
    assert answer.headers.get("content-encoding") == coding
    assert sent == (built / f"assets/index-a1.js{suffix}").read_bytes()
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "accept-encoding"
    assert int(answer.headers["content-length"]) == len(sent)


async def test_an_asset_without_a_packed_double_is_sent_as_it_is(http: httpx2.AsyncClient) -> None:
    style = await http.get("/assets/small-b2.css", headers={"accept-encoding": "br, gzip"})

    assert (style.text, style.headers["content-type"]) == ("a{}", "text/css; charset=utf-8")
    assert "content-encoding" not in style.headers


@pytest.mark.parametrize(
    "name",
    [
        *("gone-c3.js", "", "a/b.js", "index-a1.js.gz", "index-a1.js.br", "notes.txt", ".hidden.js", "index-a1.js/"),
        *("%2e%2e%5csecret.json", "~secret.json", "index-a1.js%20", "ä.js"),
        *("x" * length + ".js" for length in (128, 252, 253, 5_000)),
    ],
)
async def test_a_missing_asset_is_404_and_never_the_document(http: httpx2.AsyncClient, name: str) -> None:
    answer = await http.get(f"/assets/{name}")

    assert answer.status_code in {401, 404}
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"


async def test_a_file_that_cannot_be_read_is_absent_and_the_log_says_why(
    http: httpx2.AsyncClient, built: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("assets/round.js", "favicon.svg", "index.html"):
        (built / name).unlink(missing_ok=True)
        (built / name).symlink_to(built / name)

    answers = [(await http.get(path)).status_code for path in ("/assets/round.js", "/favicon.ico", "/chat/x")]

    assert answers == [404, 404, 503]
    assert [record.file for record in caplog.records if "cannot be read" in record.message] == [
        "round.js",
        "favicon.svg",
        "index.html",
    ]


async def test_the_icon_is_where_browsers_look_for_it(http: httpx2.AsyncClient) -> None:
    icons = [await http.get(path) for path in ("/favicon.svg", "/favicon.ico")]

    assert [(icon.text, icon.headers["content-type"]) for icon in icons] == [("<svg/>", "image/svg+xml")] * 2
    assert {icon.headers["cache-control"] for icon in icons} == {"public, max-age=86400"}


async def test_without_a_build_the_page_says_how_to_make_one_and_the_api_works(
    http: httpx2.AsyncClient, built: Path
) -> None:
    for file in built.rglob("*.*"):
        if file.is_file():
            file.unlink()

    page = await http.get("/chat/a")
    icon = await http.get("/favicon.ico")
    description = await http.get("/api/openapi.json", headers={"x-popagent-key": "a key"})

    assert page.status_code == 503
    assert page.text == "The web page was not built: run `make ui`. The API and the command line work without it.\n"
    assert page.headers["cache-control"] == "no-store"
    assert (icon.status_code, description.status_code) == (404, 200)


def test_the_policy_lets_nothing_foreign_in_and_no_text_become_code() -> None:
    directives = dict(part.strip().split(" ", 1) for part in PAGE_POLICY.split(";"))

    assert directives["default-src"] == "'none'"
    assert {value for name, value in directives.items() if name.endswith("-src") and name != "default-src"} == {
        "'self'"
    }
    assert directives["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in PAGE_POLICY


@pytest.mark.parametrize(
    "path", ["", "*", "chat", "http://localhost/", "/../etc/passwd", "/x/../api", "/./x", "//", "//x", "/x/.."]
)
def test_a_target_with_a_second_reading_is_no_page(path: str) -> None:
    assert not is_page(path)
