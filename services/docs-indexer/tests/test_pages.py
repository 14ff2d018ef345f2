"""Pages are read as they were written; who writes over somebody else's text is told, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import ValidationError

import popagent_docs_indexer
from popagent_db.query import prepare_all
from popagent_kit.errors import AppError, InvalidInputError, KeyUsedError, NotFoundError, RevisionConflictError
from popagent_kit.ids import new_id
from popagent_proto.docs_indexer.pages import CreatePageBody, PagePathTakenError

from .running import Docs, sha256

Refusal = Callable[[type[AppError], Awaitable[Any]], Awaitable[AppError]]


async def test_every_statement_fits_the_migrated_schema(docs: Docs) -> None:
    async with docs.pool.acquire() as conn:
        assert await prepare_all(conn, popagent_docs_indexer) > 30


async def test_a_page_is_read_as_it_was_written(docs: Docs) -> None:
    body = "# Bögen\r\n\n\ttab\u2028 🏹 \u202e\ud7ff"

    made = await docs.create("guide/first.md", body)
    read = await docs.read("guide/first.md")

    assert (read.body, read.revision, read.characters) == (body, sha256(body), len(body))
    assert (made.path, made.version, made.workspace_id) == ("guide/first.md", 0, docs.workspace)
    assert made == type(made).model_validate(read.model_dump())
    assert await docs.tree() == ["guide/", "guide/first.md"]
    assert await docs.events() == ["pages-changed created"]


async def test_a_path_is_found_in_any_normal_form_and_stored_in_one(docs: Docs) -> None:
    made = await docs.create("cafe\u0301.md", "x")

    assert made.path == "caf\u00e9.md"
    assert (await docs.read("cafe\u0301.md")).id == (await docs.read("caf\u00e9.md")).id == made.id


async def test_a_write_needs_the_revision_that_was_read_and_keeps_the_other_text(docs: Docs, refusal: Refusal) -> None:
    made = await docs.create("a.md", "one")
    second = await docs.write("a.md", "two", made.revision)

    late = await refusal(RevisionConflictError, docs.write("a.md", "mine", made.revision))
    unread = await refusal(RevisionConflictError, docs.write("a.md", "mine", sha256("nothing")))

    assert (second.revision, second.version) == (sha256("two"), 1)
    assert late.extra["page"]["revision"] == unread.extra["page"]["revision"] == second.revision
    assert (await docs.read("a.md")).body == "two"


async def test_a_write_that_is_repeated_is_one(docs: Docs) -> None:
    made = await docs.create("a.md", "one")

    first, again = await docs.write("a.md", "two", made.revision), await docs.write("a.md", "two", made.revision)

    assert first == again
    assert await docs.events() == ["pages-changed created", "pages-changed written"]


async def test_of_two_who_write_at_once_one_wins_and_the_other_is_told(docs: Docs) -> None:
    for number in range(5):
        made = await docs.create(f"{number}.md", "base")

        answers = await asyncio.gather(
            *(docs.write(f"{number}.md", f"text of {who}", made.revision) for who in range(4)), return_exceptions=True
        )

        won = [each for each in answers if not isinstance(each, BaseException)]
        lost = [each for each in answers if isinstance(each, RevisionConflictError)]
        assert (len(won), len(lost)) == (1, 3)
        assert {each.extra["page"]["revision"] for each in lost} == {won[0].revision}
        assert sha256((await docs.read(f"{number}.md")).body) == won[0].revision


async def test_of_two_who_make_one_page_at_once_one_is_told_of_the_other(docs: Docs) -> None:
    answers = await asyncio.gather(docs.create("new/a.md", "x"), docs.create("new/A.md", "y"), return_exceptions=True)

    [won] = [each for each in answers if not isinstance(each, BaseException)]
    [lost] = [each for each in answers if isinstance(each, PagePathTakenError)]
    assert lost.extra["there"] == {"path": won.path, "kind": "page", "pageId": won.id}
    assert len(await docs.tree()) == 2


@pytest.mark.parametrize("path", ["Guide/A.md", "guide/a.md", "GUIDE/b.md", "guide/a.md/c.md", "guide.md/x.md"])
async def test_a_path_that_reads_like_another_is_taken(docs: Docs, refusal: Refusal, path: str) -> None:
    await docs.create("guide/a.md", "x")
    await docs.create("guide.md", "x")

    taken = await refusal(PagePathTakenError, docs.create(path, "y"))

    assert taken.field == "path"
    assert "uide" in taken.message


async def test_the_same_command_twice_is_one_page_and_its_id_is_not_taken_for_another(
    docs: Docs, refusal: Refusal
) -> None:
    command = new_id()

    first = await docs.create("a.md", "one", command_id=command)
    again = await docs.create("a.md", "one", command_id=command)

    assert first == again
    for path, body, workspace in (("a.md", "two", docs), ("b.md", "one", docs), ("a.md", "one", docs.elsewhere())):
        await refusal(KeyUsedError, workspace.create(path, body, command_id=command))


async def test_workspaces_do_not_see_each_other_and_there_are_none_but_those_of_chat(
    docs: Docs, refusal: Refusal
) -> None:
    made = await docs.create("a.md", "of north")
    south, nowhere = docs.elsewhere(), docs.elsewhere(known=False)

    await refusal(NotFoundError, south.read("a.md"))
    theirs = await south.create("a.md", "of south")
    told = [
        await refusal(NotFoundError, each)
        for each in (
            nowhere.create("a.md", "x"),
            nowhere.read("a.md"),
            nowhere.write("a.md", "x", made.revision),
            nowhere.delete("a.md", made.revision),
            nowhere.move("a.md", "b.md"),
            nowhere.make_folder("a"),
            nowhere.tree(),
        )
    ]

    assert (await docs.read("a.md")).body == "of north"
    assert theirs.id != made.id
    assert {each.http_status for each in told} == {404}
    assert not await docs.pool.fetchval("select count(*) from libraries where workspace_id = $1", nowhere.workspace)


async def test_chat_is_asked_only_for_the_first_page_of_a_workspace(docs: Docs) -> None:
    for number in range(3):
        await docs.create(f"{number}.md")

    assert docs.known.asked == 1


async def test_a_million_characters_of_any_kind_are_stored_and_one_more_is_not(docs: Docs) -> None:
    widest = "🏹" * 1_000_000
    escaped = "\x01" * 1_000_000

    for name, body in (("wide.md", widest), ("escaped.md", escaped)):
        await docs.create(name, body)
        assert (await docs.read(name)).body == body
    with pytest.raises(ValidationError, match="1000000"):
        CreatePageBody(path="a.md", body="x" * 1_000_001)


async def test_a_stale_deletion_deletes_nothing(docs: Docs, refusal: Refusal) -> None:
    made = await docs.create("a/b.md", "one")
    now = await docs.write("a/b.md", "two", made.revision)

    stale = await refusal(RevisionConflictError, docs.delete("a/b.md", made.revision))
    gone = await docs.delete("a/b.md", now.revision)

    assert stale.extra["page"]["revision"] == now.revision
    assert gone.id == made.id
    await refusal(NotFoundError, docs.read("a/b.md"))
    assert await docs.tree() == ["a/"]
    assert (await docs.events())[-1] == "pages-deleted"


async def test_a_bad_path_is_refused_wherever_one_is_given(docs: Docs, refusal: Refusal) -> None:
    await docs.create("a.md", "x")
    bad = "../a.md"

    refused = [
        await refusal(InvalidInputError, each)
        for each in (
            docs.create(bad, "x"),
            docs.read(bad),
            docs.write(bad, "x", sha256("x")),
            docs.delete(bad, sha256("x")),
            docs.move(bad, "b.md"),
            docs.move("a.md", bad),
            docs.make_folder(bad),
            docs.delete_folder(bad),
            docs.tree(folder=bad),
        )
    ]

    assert [each.extra["rule"] for each in refused] == ["traversal"] * 9
    assert {each.field for each in refused} == {"path", "to", "folder"}
