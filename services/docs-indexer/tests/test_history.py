"""Every text that a page had comes back, and deleted pages do for a month."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from popagent_docs_indexer.pages.history import drop_deleted
from popagent_kit.cursors import UnknownCursorError
from popagent_kit.errors import AppError, InvalidInputError, NotFoundError, RevisionConflictError
from popagent_proto.docs_indexer.pages import (
    KEPT_VERSIONS,
    DeletedPages,
    GetPageVersion,
    ListDeletedPages,
    PageHistory,
    PagePathTakenError,
    PageSummary,
    ReadHistory,
    RestoreBody,
    RestorePage,
)

from .running import Docs, sha256

Refusal = Callable[[type[AppError], Awaitable[Any]], Awaitable[AppError]]


async def history(docs: Docs, page: PageSummary, **fields: Any) -> PageHistory:
    return await docs.ask(ReadHistory(workspace_id=docs.workspace, page_id=page.id, **fields))


async def restore(docs: Docs, page_id: str, version: int, revision: str | None = None) -> PageSummary:
    asked = RestoreBody(version=version, revision=revision)
    return await docs.ask(RestorePage(workspace_id=docs.workspace, page_id=page_id, asked=asked))


async def deleted(docs: Docs, **fields: Any) -> DeletedPages:
    return await docs.ask(ListDeletedPages(workspace_id=docs.workspace, **fields))


async def written(docs: Docs, *texts: str, path: str = "a.md") -> PageSummary:
    page = await docs.create(path, texts[0])
    for text in texts[1:]:
        page = await docs.write(path, text, page.revision)
    return page


async def test_the_texts_of_a_page_are_listed_newest_first_and_read(docs: Docs, refusal: Refusal) -> None:
    page = await written(docs, "one", "two", "three")
    await docs.move("a.md", "b.md")
    page = await docs.write("b.md", "four", page.revision)

    first = await history(docs, page, limit=3)
    rest = await history(docs, page, limit=3, cursor=first.next_cursor)
    old = await docs.ask(GetPageVersion(workspace_id=docs.workspace, page_id=page.id, version=1))

    assert [(each.version, each.path, each.is_current) for each in first.items] == [
        (4, "b.md", True),
        (2, "b.md", False),
        (1, "a.md", False),
    ]
    assert [each.version for each in rest.items] == [0]
    assert rest.next_cursor is None
    assert (old.body, old.revision, old.characters) == ("two", sha256("two"), 3)
    await refusal(NotFoundError, docs.ask(GetPageVersion(workspace_id=docs.workspace, page_id=page.id, version=3)))
    await refusal(InvalidInputError, history(docs, page, cursor="x"))


async def test_another_workspace_reads_and_restores_nothing_by_an_id(docs: Docs, refusal: Refusal) -> None:
    page = await written(docs, "one", "two")
    other = docs.elsewhere()
    await other.create("a.md", "theirs")

    for asked in (
        history(other, page),
        other.ask(GetPageVersion(workspace_id=other.workspace, page_id=page.id, version=0)),
        restore(other, page.id, 0, page.revision),
    ):
        assert (await refusal(NotFoundError, asked)).message == "There is no such page."

    assert (await docs.read("a.md")).body == "two"


async def test_an_old_text_becomes_the_newest_one(docs: Docs, refusal: Refusal) -> None:
    page = await written(docs, "one", "two")

    stale = await refusal(RevisionConflictError, restore(docs, page.id, 0, sha256("one")))
    unsaid = await refusal(RevisionConflictError, restore(docs, page.id, 0))
    restored = await restore(docs, page.id, 0, page.revision)
    same = await restore(docs, page.id, 2, restored.revision)

    assert stale.extra["page"]["revision"] == unsaid.extra["page"]["revision"] == page.revision
    assert (await docs.read("a.md")).body == "one"
    assert same == restored
    assert [each.revision for each in (await history(docs, page)).items] == [sha256(t) for t in ("one", "two", "one")]
    assert (await docs.events())[-1] == "pages-changed restored"


async def test_a_deleted_page_comes_back_where_it_was_with_the_text_that_is_wanted(docs: Docs) -> None:
    page = await written(docs, "one", "two", path="a/b/c.md")
    await docs.delete("a/b/c.md", page.revision)
    await docs.delete_folder("a", (await docs_revision(docs, "a")))

    [gone] = (await deleted(docs)).items
    restored = await restore(docs, gone.id, gone.version)

    assert (gone.id, gone.path, gone.title, gone.version) == (page.id, "a/b/c.md", "c", 1)
    assert restored.revision == sha256("two")
    assert await docs.tree() == ["a/", "a/b/", "a/b/c.md"]
    assert (await deleted(docs)).items == []
    await docs.delete("a/b/c.md", restored.revision)
    assert (await restore(docs, gone.id, 0)).revision == sha256("one")
    assert (await docs.read("a/b/c.md")).body == "one"


async def docs_revision(docs: Docs, folder: str) -> str:
    try:
        await docs.delete_folder(folder)
    except AppError as told:
        return str(told.extra["revision"])
    raise AssertionError


async def test_a_workspace_that_is_none_has_no_list_of_deleted_pages(docs: Docs, refusal: Refusal) -> None:
    assert (await deleted(docs)).items == []

    await refusal(NotFoundError, deleted(docs.elsewhere(known=False)))


async def test_a_deleted_page_does_not_come_back_over_another(docs: Docs, refusal: Refusal) -> None:
    page = await docs.create("a.md", "old")
    await docs.delete("a.md", page.revision)
    await docs.create("A.md", "new")

    await refusal(PagePathTakenError, restore(docs, page.id, 0))

    assert await docs.tree() == ["A.md"]
    assert len((await deleted(docs)).items) == 1


async def test_deleted_pages_are_listed_in_parts_the_newest_first_and_go_for_good_after_a_month(docs: Docs) -> None:
    for number in range(3):
        page = await docs.create(f"{number}.md", "x")
        await docs.delete(page.path, page.revision)

    first = await deleted(docs, limit=2)
    rest = await deleted(docs, limit=2, cursor=first.next_cursor)
    await docs.pool.execute(
        "update pages set deleted_at = now() - interval '31 days' where workspace_id = $1 and path = '0.md'",
        docs.workspace,
    )
    dropped = await drop_deleted(docs.pool)

    assert [each.path for each in (*first.items, *rest.items)] == ["2.md", "1.md", "0.md"]
    assert dropped == 1
    assert [each.path for each in (await deleted(docs)).items] == ["2.md", "1.md"]
    assert await drop_deleted(docs.pool, timedelta(days=30)) == 0


async def test_of_each_page_the_newest_texts_are_kept(docs: Docs) -> None:
    page = await written(docs, "0", "1", "2")
    await docs.pool.execute(
        "insert into page_versions select $1, n, 'a.md', n::text, repeat('0', 64), 1, now()"
        " from generate_series(-200, -1) n",
        page.id,
    )

    await docs.write("a.md", "3", page.revision)
    kept = [each.version for each in (await history(docs, page, limit=200)).items]

    assert kept == list(range(3, 3 - KEPT_VERSIONS, -1))


async def test_no_cursor_but_that_of_a_list_is_taken(docs: Docs, refusal: Refusal) -> None:
    told = await refusal(InvalidInputError, deleted(docs, cursor="x"))

    assert told.field == UnknownCursorError().field
