"""Folders hold pages; they move and go with all that is in them, and only as they were seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from popagent_docs_indexer.paths import DEEPEST
from popagent_kit.errors import AppError, InvalidInputError, NotFoundError, RevisionConflictError
from popagent_proto.docs_indexer.pages import PagePathTakenError
from popagent_proto.docs_indexer.tree import FolderInUseError, ListDocs

from .running import Docs, sha256

Refusal = Callable[[type[AppError], Awaitable[Any]], Awaitable[AppError]]


async def filled(docs: Docs) -> None:
    for path in ("a/one.md", "a/deep/two.md", "a-b.md", "b/three.md"):
        await docs.create(path, f"text of {path}")


async def test_a_folder_is_made_with_those_above_it_and_again_without_an_error(docs: Docs) -> None:
    await docs.make_folder("a/b/c")
    await docs.make_folder("a/b/c")
    await docs.make_folder("a/b")

    assert await docs.tree() == ["a/", "a/b/", "a/b/c/"]
    assert await docs.events() == ["tree-changed made"]


async def test_the_tree_is_listed_in_parts_or_below_a_folder(docs: Docs, refusal: Refusal) -> None:
    await filled(docs)

    whole, parts, cursor = await docs.tree(), [], None
    for _ in range(4):
        listed = await docs.ask(ListDocs(workspace_id=docs.workspace, cursor=cursor, limit=2))
        parts += [entry.path for entry in listed.items]
        cursor = listed.next_cursor
    entry = (await docs.ask(ListDocs(workspace_id=docs.workspace, folder="b"))).items[0]
    missing = await refusal(NotFoundError, docs.tree(folder="a/x"))

    assert whole == ["a/", "a-b.md", "a/deep/", "a/deep/two.md", "a/one.md", "b/", "b/three.md"]
    assert (parts, cursor) == ([each.rstrip("/") for each in whole], None)
    assert await docs.tree(folder="a") == ["a/deep/", "a/deep/two.md", "a/one.md"]
    assert (entry.kind, entry.characters, entry.updated_at is None) == ("page", 18, False)
    assert missing.message == "There is no such folder."
    assert await docs.elsewhere().tree() == []


async def test_a_page_moves_and_keeps_its_text_and_its_id(docs: Docs) -> None:
    made = await docs.create("a/one.md", "x")

    moved = await docs.move("a/one.md", "c/d/uno.md", made.revision)
    read = await docs.read("c/d/uno.md")

    assert (moved.kind, moved.path, moved.pages) == ("page", "c/d/uno.md", 1)
    assert (read.id, read.body, read.version, read.title) == (made.id, "x", 1, "uno")
    assert await docs.tree() == ["a/", "c/", "c/d/", "c/d/uno.md"]
    assert (await docs.events())[-1] == "pages-changed moved"


async def test_a_name_may_change_in_nothing_but_its_case(docs: Docs) -> None:
    await docs.create("guide/readme.md", "x")

    await docs.move("guide/readme.md", "guide/README.md")
    await docs.move("guide", "Guide")
    same = await docs.move("Guide", "Guide")

    assert await docs.tree() == ["Guide/", "Guide/README.md"]
    assert same.pages == 0
    await docs.create("Guide/more.md")


async def test_what_moves_takes_no_place_that_is_taken(docs: Docs, refusal: Refusal) -> None:
    await filled(docs)

    for path, to in (
        ("a/one.md", "a-b.md"),
        ("a/one.md", "B/three.md"),
        ("a", "b"),
        ("a", "a-b.md"),
        ("b", "a-b.md/c"),
    ):
        taken = await refusal(PagePathTakenError, docs.move(path, to))
        assert taken.field == "to"
    with pytest.raises(InvalidInputError, match="into itself"):
        await docs.move("a", "A/b")
    for path in ("x", "x.md"):
        await refusal(NotFoundError, docs.move(path, "y.md"))
    await refusal(RevisionConflictError, docs.move("a/one.md", "c.md", sha256("another text")))

    assert len(await docs.tree()) == 7


async def test_a_folder_moves_with_all_that_is_in_it(docs: Docs) -> None:
    await filled(docs)
    await docs.make_folder("a/empty")

    moved = await docs.move("a", "b/new/Ä")

    assert (moved.kind, moved.pages) == ("folder", 2)
    below = ["b/new/", "b/new/Ä/", "b/new/Ä/deep/", "b/new/Ä/deep/two.md", "b/new/Ä/empty/", "b/new/Ä/one.md"]
    assert await docs.tree() == ["a-b.md", "b/", *below, "b/three.md"]
    assert (await docs.read("b/new/Ä/deep/two.md")).body == "text of a/deep/two.md"
    assert (await docs.events())[-1] == "tree-changed moved"
    # Names that read alike are still told from each other there.
    with pytest.raises(PagePathTakenError):
        await docs.create("b/new/ä/ONE.md")


async def test_nothing_is_moved_to_where_its_path_would_be_too_long_or_too_deep(docs: Docs, refusal: Refusal) -> None:
    await docs.create("a/" * 20 + "x.md")
    await docs.create("/".join(["n" * 200] * 4) + "/x.md")

    deep = await refusal(InvalidInputError, docs.move("a", "b/" * (DEEPEST - 20) + "c"))
    long = await refusal(InvalidInputError, docs.move("n" * 200, "m" * 250 + "/" + "m" * 200))
    await docs.move("a", "b/" * (DEEPEST - 21) + "c")

    assert {each.field for each in (deep, long)} == {"to"}


async def test_a_folder_with_something_in_it_goes_only_as_it_was_seen(docs: Docs, refusal: Refusal) -> None:
    await filled(docs)

    told = await refusal(FolderInUseError, docs.delete_folder("a"))
    await docs.create("a/late.md", "just come")
    changed = await refusal(FolderInUseError, docs.delete_folder("a", told.extra["revision"]))
    one = await docs.read("a/late.md")
    await docs.write("a/late.md", "and changed", one.revision)
    again = await refusal(FolderInUseError, docs.delete_folder("a", changed.extra["revision"]))
    gone = await docs.delete_folder("a", again.extra["revision"])

    assert (told.extra["pages"], told.extra["folders"]) == (2, 1)
    assert changed.extra["pages"] == 3
    assert (gone.pages, gone.folders) == (3, 1)
    assert await docs.tree() == ["a-b.md", "b/", "b/three.md"]
    await refusal(NotFoundError, docs.delete_folder("a"))
    await docs.make_folder("empty")
    assert (await docs.delete_folder("empty")).pages == 0


async def test_pages_that_come_while_their_folder_moves_are_in_one_of_both(docs: Docs) -> None:
    await filled(docs)

    answers = await asyncio.gather(
        *(docs.create(f"a/{number}.md") for number in range(4)),
        docs.move("a", "z"),
        *(docs.create(f"a/{number}.md") for number in range(4, 8)),
        return_exceptions=True,
    )

    pages = [path for path in await docs.tree() if path.startswith(("a/", "z/")) and path.endswith(".md")]
    assert len(pages) == 2 + 8
    assert [each for each in answers if isinstance(each, BaseException)] == []
