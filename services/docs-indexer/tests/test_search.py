"""A page is found by its words as soon as it is saved, and by none that it has not any more."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.search import store
from popagent_docs_indexer.search.index import INDEX_VERSION
from popagent_docs_indexer.search.keeping import forget_words, keep_up
from popagent_kit.errors import AppError, InvalidInputError
from popagent_proto.docs_indexer.pages import RestoreBody, RestorePage
from popagent_proto.docs_indexer.search import DocHit, DocHits, SearchDocs
from popagent_rows.jobs import Jobs
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox

from .running import Docs

Refusal = Callable[[type[AppError], Awaitable[Any]], Awaitable[AppError]]

GUIDE = """---
title: The handbook
---
# Installing

Download the archive, then unpack it with tar.

## On Linux

Run `make install` as root. The variable max_parallel_workers sets how many work at once.

## On Windows

Use the installer; `getUserById()` needs no rights.
"""


async def search(docs: Docs, q: str, **fields: Any) -> DocHits:
    given = {"workspace_id": docs.workspace, **fields}
    return await docs.ask(SearchDocs(q=q, **given))


async def paths(docs: Docs, q: str, **fields: Any) -> list[str]:
    return [hit.path for hit in (await search(docs, q, **fields)).items]


def shown(hit: DocHit) -> str:
    return "".join(f"[{part.text}]" if part.marked else part.text for part in hit.snippet)


async def test_a_section_is_found_with_its_heading_its_anchor_and_why(docs: Docs) -> None:
    await docs.create("guide.md", GUIDE)
    await docs.create("other.md", "Nothing of that kind.")

    [hit] = (await search(docs, "How many parallel workers?")).items
    [windows] = (await search(docs, "getUserById")).items

    assert (hit.path, hit.title, hit.heading, hit.anchor) == (
        "guide.md",
        "The handbook",
        ["Installing", "On Linux"],
        "on-linux",
    )
    assert "max_[parallel]_[workers]" in shown(hit)
    assert (windows.anchor, hit.workspace_id) == ("on-windows", docs.workspace)


@pytest.mark.parametrize(
    "q",
    [
        "max_parallel_workers",
        "PARALLEL",
        "getUserById",
        "user id",
        "installers",
        "handbook",
        "linux",
        "paralell",
        "instaler",
    ],
)
async def test_names_plurals_titles_headings_and_mistyped_words_find_a_page(docs: Docs, q: str) -> None:
    await docs.create("guide.md", GUIDE)
    await docs.create("other.md", "Nothing of that kind.")

    assert await paths(docs, q) == ["guide.md"]


async def test_what_was_taken_for_another_word_is_told(docs: Docs) -> None:
    await docs.create("guide.md", GUIDE)

    assert (await search(docs, "paralell workers")).corrected == ["paralell → parallel"]
    assert (await search(docs, "parallel workers")).corrected == []


async def test_the_rarer_word_and_the_title_weigh_more(docs: Docs) -> None:
    for number in range(6):
        await docs.create(f"{number}.md", "A server with some settings and a port.")
    await docs.create("rare.md", "A server with a heron.")
    await docs.create("titled.md", "# Heron\n\nAbout birds and their nests in the reeds.")

    assert set((await paths(docs, "server heron"))[:2]) == {"rare.md", "titled.md"}
    assert (await paths(docs, "heron"))[0] == "titled.md"


async def test_writing_without_blanks_is_found_by_parts_of_it(docs: Docs) -> None:
    await docs.create("ja.md", "# 導入\n\nこのソフトウェアは日本語の文書を検索します。")
    await docs.create("zh.md", "这个软件搜索中文文档。")

    assert await paths(docs, "日本語") == ["ja.md"]
    assert await paths(docs, "中文") == ["zh.md"]


async def test_a_page_is_found_by_what_it_says_now(docs: Docs) -> None:
    page = await docs.create("a/b.md", "about herons")
    page = await docs.write("a/b.md", "about egrets", page.revision)
    after_write = [await paths(docs, "herons"), await paths(docs, "egrets")]
    await docs.move("a/b.md", "c/crane.md")
    after_move = [await paths(docs, "egret"), await paths(docs, "crane")]
    await docs.delete("c/crane.md", page.revision)
    after_delete = await paths(docs, "egret")
    asked = RestoreBody(version=0)
    await docs.ask(RestorePage(workspace_id=docs.workspace, page_id=page.id, asked=asked))
    after_restore = [await paths(docs, "egret"), await paths(docs, "heron")]
    revision = ""
    try:
        await docs.delete_folder("c")
    except AppError as told:
        revision = told.extra["revision"]
    await docs.delete_folder("c", revision)

    assert after_write == [[], ["a/b.md"]]
    assert after_move == [["c/crane.md"], ["c/crane.md"]]
    assert after_delete == []
    assert after_restore == [[], ["c/crane.md"]]
    assert await paths(docs, "heron") == []
    left = "select chunks, words, (select count(*) from postings p where p.library = l.number) from libraries l"
    assert list(*await docs.pool.fetch(f"{left} where workspace_id = $1", docs.workspace)) == [0, 0, 0]


async def test_a_search_stays_in_its_workspace_or_goes_over_all_and_in_its_folder(docs: Docs, refusal: Refusal) -> None:
    other = docs.elsewhere()
    word = f"quokka{random.randrange(10**9)}"
    await docs.create("a/one.md", word)
    await docs.create("a/b/two.md", word)
    await docs.create("ab/three.md", word)
    await other.create("four.md", word)

    assert await paths(docs, word, folder="a") == ["a/one.md", "a/b/two.md"]
    assert await paths(docs, word, folder="none") == []
    assert sorted(await paths(docs, word)) == ["a/b/two.md", "a/one.md", "ab/three.md"]
    assert await paths(other, word) == ["four.md"]
    everywhere = (await search(docs, word, workspace_id=None)).items
    assert {hit.workspace_id for hit in everywhere} == {docs.workspace, other.workspace}
    assert len(everywhere) == 4
    assert (await refusal(InvalidInputError, search(docs, word, workspace_id=None, folder="a"))).field == "folder"


async def test_a_folder_gives_as_many_as_there_are_however_many_are_elsewhere(docs: Docs) -> None:
    for number in range(30):
        await docs.create(f"many/{number}.md", "heron heron heron")
    for number in range(5):
        await docs.create(f"few/{number}.md", "one heron among a good many other words")

    assert len(await paths(docs, "heron", folder="few", limit=5)) == 5


@pytest.mark.parametrize(
    "q",
    [
        "",
        "   ",
        "AND OR NOT",
        "the of and",
        "\"a' & | ! ( ) :* <->",
        "'; drop table pages; --",
        "%_\\",
        "x" * 100_000,
        "word " * 20_000,
        " ".join(f"w{number}" for number in range(10_000)),
        "👩\u200d💻",
        "\u202e\ud7ff",
        "*",
        "$1 $2",
    ],
)
async def test_whatever_is_asked_there_is_an_answer(docs: Docs, q: str) -> None:
    await docs.create("a.md", "the word of and or")

    found = await search(docs, q)

    assert len(found.items) <= 1


async def test_a_million_characters_of_different_words_are_saved_and_found(docs: Docs) -> None:
    body = " ".join(f"{number:06x}q" for number in range(125_000))[:1_000_000]

    await docs.create("big.md", body)
    [hit] = (await search(docs, "01e847q")).items

    assert "[01e847q]" in shown(hit)
    page = await docs.read("big.md")
    await docs.delete("big.md", page.revision)
    assert await paths(docs, "01e847q") == []


async def test_pages_of_older_rules_are_indexed_again_and_words_that_stand_nowhere_are_forgotten(docs: Docs) -> None:
    await docs.create("a.md", "# New\n\nabout herons")
    await docs.pool.execute("update pages set index_version = 0, title = 'old' where workspace_id = $1", docs.workspace)
    await docs.pool.execute(
        "insert into vocabulary select number, 'dodo' from libraries where workspace_id = $1", docs.workspace
    )
    jobs = Jobs("docs-indexer", docs.pool, Holder.of_this_process())
    deps = DocsDeps(docs.pool, Outbox(docs.pool, docs.bus.publish), docs.bus, jobs)

    assert await keep_up(deps) == 1
    await forget_words(deps)

    version = await docs.pool.fetchval("select index_version from pages where workspace_id = $1", docs.workspace)
    words = await docs.pool.fetch(
        "select word from vocabulary join libraries on library = number where workspace_id = $1 order by 1",
        docs.workspace,
    )
    assert (await docs.read("a.md")).title == "New"
    assert version == INDEX_VERSION
    assert [each["word"] for each in words] == ["about", "heron"]
    assert await paths(docs, "heron") == ["a.md"]


async def test_a_search_beside_writes_sees_a_page_as_it_was_or_as_it_is(docs: Docs) -> None:
    page = await docs.create("a.md", "heron 0")

    async def write() -> None:
        revision = page.revision
        for number in range(1, 15):
            revision = (await docs.write("a.md", f"heron {number}", revision)).revision

    writing = asyncio.create_task(write())
    while not writing.done():
        assert await paths(docs, "heron") in (["a.md"], [])
    await writing

    assert await paths(docs, "14") == ["a.md"]


async def test_a_term_is_found_by_the_index_alone(docs: Docs) -> None:
    async with docs.pool.transaction() as conn:
        await conn.execute("set local enable_seqscan = off")
        plan = await conn.fetch(f"explain {store.RANK.sql}", [1], ["heron"], [1.0], 10.0, 5.0, 10)

    assert any("Index Only Scan using postings_pkey" in line[0] or "postings_pkey" in line[0] for line in plan)
