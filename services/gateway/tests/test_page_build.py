"""What `make ui` built: its sizes, what it would fetch, and what its parts are licensed under."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from popagent_gateway.routes.pages import BUILT, TYPES

MANIFEST = BUILT / ".vite/manifest.json"
# Gzipped kilobytes: of what is loaded before anything is seen, of the chunk that renders answers, of any other screen.
ENTRY_KB, MARKDOWN_KB, ROUTE_KB, CSS_KB = 170, 170, 40, 20
PERMISSIVE = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "Unlicense", "CC0-1.0"}


@pytest.fixture(scope="module")
def chunks() -> dict[str, dict[str, Any]]:
    if not MANIFEST.exists():
        reason = "the page was not built: `make ui` builds it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    found: dict[str, dict[str, Any]] = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return found


def kilobytes(*names: str) -> float:
    return sum(len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in names) / 1000


def reached(chunks: dict[str, dict[str, Any]], start: str) -> set[str]:
    """The chunks that are loaded with `start`, itself included."""
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += chunks[name].get("imports", [])
    return found


def test_what_is_loaded_stays_within_its_budget(chunks: dict[str, dict[str, Any]]) -> None:
    first = reached(chunks, "index.html")
    budgets = {"index.html": ENTRY_KB, "src/chat/Markdown.tsx": MARKDOWN_KB}
    lazy = [name for name, chunk in chunks.items() if chunk.get("isDynamicEntry")]
    sizes = {"index.html": kilobytes(*(chunks[name]["file"] for name in first))}
    for name in lazy:
        own = reached(chunks, name) - first
        sizes[name] = kilobytes(*(chunks[each]["file"] for each in own if each == name or each not in budgets))
    styles = {style for chunk in chunks.values() for style in chunk.get("css", [])}

    assert {name: size for name, size in sizes.items() if size > budgets.get(name, ROUTE_KB)} == {}
    assert kilobytes(*styles) <= CSS_KB
    assert len(lazy) >= 3, "screens and Markdown are loaded when they are needed"


def test_the_first_view_is_five_files_at_most(chunks: dict[str, dict[str, Any]]) -> None:
    first = reached(chunks, "index.html")
    files = {chunks[name]["file"] for name in first} | {
        style for name in first for style in chunks[name].get("css", [])
    }

    assert len(files) + len({"/", "/favicon.svg"}) <= 5


@pytest.mark.usefixtures("chunks")
def test_nothing_is_fetched_from_elsewhere_and_no_font() -> None:
    document = (BUILT / "index.html").read_text(encoding="utf-8")
    styles = "".join(file.read_text(encoding="utf-8") for file in BUILT.rglob("*.css"))
    files = {file.suffix for file in (BUILT / "assets").iterdir()}

    assert [link for link in re.findall(r'(?:href|src)="([^"]*)"', document) if not re.match(r"/[^/]", link)] == []
    assert re.findall(r"@import|@font-face|url\(\s*['\"]?(?:https?:)?//", styles) == []
    assert "<style" not in document
    assert not re.search(r"<script(?![^>]*\ssrc=)", document)
    assert files <= {*TYPES, ".br", ".gz"}


@pytest.mark.usefixtures("chunks")
def test_every_asset_of_some_size_has_its_packed_doubles() -> None:
    big = [file for file in (BUILT / "assets").glob("*.[jc]s*") if file.suffix in TYPES and file.stat().st_size > 1_024]

    assert big
    assert [file.name for file in big if not file.with_name(f"{file.name}.br").exists()] == []
    assert [file.name for file in big if gzip.decompress(Path(f"{file}.gz").read_bytes()) != file.read_bytes()] == []


@pytest.mark.usefixtures("chunks")
def test_the_licences_of_what_is_in_it_are_carried_and_permissive() -> None:
    text = (BUILT / "licences.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## (\S+) - [\w.+-]+ \((.*)\)$", text, re.M))

    assert {"react", "react-dom", "ai", "streamdown"} <= set(parts)
    assert {name: licence for name, licence in parts.items() if licence not in PERMISSIVE} == {}
