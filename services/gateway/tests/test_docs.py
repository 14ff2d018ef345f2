"""Documentation over HTTP: what is asked of its owner, and what stands beside a refusal."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from popagent_kit.clock import now
from popagent_kit.errors import InvalidInputError, RevisionConflictError
from popagent_proto.docs_indexer import pages, search, tree

from .conftest import Owner

PATH = "/api/workspaces/w1/docs"
REVISION = "0" * 64
SUMMARY = pages.PageSummary(
    id="p1",
    workspace_id="w1",
    path="a/b.md",
    title="b",
    revision=REVISION,
    version=3,
    characters=1,
    source_id=None,
    created_at=now(),
    updated_at=now(),
)
VIEW = pages.PageView(**SUMMARY.model_dump(), body="x")
ENTRY = tree.TreeEntry(kind="page", path="a/b.md", characters=1, updated_at=now())


async def test_pages_are_read_made_written_and_deleted_by_their_path(
    http: httpx2.AsyncClient, docs_indexer: Owner
) -> None:
    docs_indexer.answer(pages.GetPage, VIEW)
    docs_indexer.answer(pages.CreatePage, SUMMARY)
    docs_indexer.answer(pages.WritePage, SUMMARY)
    docs_indexer.answer(pages.DeletePage, pages.PageDeletedView(id="p1", path="a/b.md"))

    read = await http.get(f"{PATH}/page", params={"path": "a/ü b.md"})
    got = docs_indexer.last()
    made = await http.post(f"{PATH}/page", json={"path": "a/b.md", "body": "x"}, headers={"idempotency-key": "once"})
    created = docs_indexer.last()
    written = await http.put(f"{PATH}/page", json={"path": "a/b.md", "body": "x", "revision": REVISION})
    wrote = docs_indexer.last()
    gone = await http.delete(f"{PATH}/page", params={"path": "a/b.md", "revision": REVISION})

    assert (read.status_code, read.json()) == (200, VIEW.wire())
    assert (got.workspace_id, got.path) == ("w1", "a/ü b.md")
    assert (made.status_code, created.command_id, created.page.body) == (201, "once", "x")
    assert (written.json()["version"], wrote.page.revision) == (3, REVISION)
    assert (gone.json(), docs_indexer.last().revision) == ({"id": "p1", "path": "a/b.md"}, REVISION)


async def test_folders_and_history_are_asked_for_with_what_the_client_sent(
    http: httpx2.AsyncClient, docs_indexer: Owner
) -> None:
    version = pages.PageVersionView(
        version=1, path="a.md", revision=REVISION, characters=1, written_at=now(), is_current=False, body="x"
    )
    docs_indexer.answer(tree.ListDocs, tree.DocsTree(items=[ENTRY], next_cursor="a/b.md"))
    docs_indexer.answer(tree.MakeFolder, tree.FolderView(path="a"))
    docs_indexer.answer(tree.MoveDocs, tree.MovedView(kind="folder", path="b", pages=2))
    docs_indexer.answer(tree.DeleteFolder, tree.FolderDeletedView(path="a", pages=2, folders=1))
    docs_indexer.answer(pages.ListDeletedPages, pages.DeletedPages(items=[]))
    docs_indexer.answer(pages.ReadHistory, pages.PageHistory(page=SUMMARY, items=[]))
    docs_indexer.answer(pages.GetPageVersion, version)
    docs_indexer.answer(pages.RestorePage, SUMMARY)

    answers = [
        await http.get(PATH, params={"folder": "a", "limit": 1}),
        await http.post(f"{PATH}/folders", json={"path": "a"}),
        await http.post(f"{PATH}/move", json={"path": "a", "to": "b"}),
        await http.delete(f"{PATH}/folders", params={"path": "a", "revision": REVISION}),
        await http.get(f"{PATH}/deleted", params={"limit": 2}),
        await http.get(f"{PATH}/pages/p1/history"),
        await http.get(f"{PATH}/pages/p1/history/1"),
        await http.post(f"{PATH}/pages/p1/restore", json={"version": 1, "revision": REVISION}),
    ]

    assert [each.status_code for each in answers] == [200, 201, 200, 200, 200, 200, 200, 200]
    listed, folder, move, deletion, deleted, history, read, restored = docs_indexer.asked
    assert (listed.folder, listed.limit, listed.workspace_id) == ("a", 1, "w1")
    assert (folder.path, move.move.to, deletion.revision, deleted.limit) == ("a", "b", REVISION, 2)
    assert (history.page_id, read.version, restored.asked.version) == ("p1", 1, 1)
    assert answers[0].json()["nextCursor"] == "a/b.md"


async def test_a_conflict_carries_the_page_and_a_bad_path_its_rule(
    http: httpx2.AsyncClient, docs_indexer: Owner
) -> None:
    docs_indexer.answer(pages.WritePage, RevisionConflictError(extra={"page": SUMMARY.wire()}))
    docs_indexer.answer(pages.GetPage, InvalidInputError("Down only.", field="path", extra={"rule": "traversal"}))

    stale = await http.put(f"{PATH}/page", json={"path": "a.md", "body": "x", "revision": REVISION})
    bad = await http.get(f"{PATH}/page?path=%2e%2e/a.md")

    assert (stale.status_code, stale.json()["code"]) == (409, "revision_conflict")
    assert stale.json()["page"]["revision"] == REVISION
    assert (bad.status_code, bad.json()["rule"], bad.json()["field"]) == (422, "traversal", "path")
    assert docs_indexer.last().path == "../a.md"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"path": "a.md", "body": "x"}, "revision"),
        ({"path": "a.md", "body": "x", "revision": "F" * 64}, "revision"),
        ({"path": "a.md", "body": "x" * 1_000_001, "revision": REVISION}, "body"),
        ({"path": "a\x00.md", "body": "", "revision": REVISION}, "path"),
        ({"path": "a.md", "body": "a\x00b", "revision": REVISION}, "body"),
        ({"path": "a.md", "body": "", "revision": REVISION, "workspaceId": "w2"}, "workspaceId"),
        ({"path": "a" * 20_001, "body": "", "revision": REVISION}, "path"),
    ],
)
async def test_a_bad_body_reaches_no_owner(
    http: httpx2.AsyncClient, docs_indexer: Owner, body: dict[str, Any], field: str
) -> None:
    answer = await http.put(f"{PATH}/page", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert docs_indexer.asked == []


async def test_a_page_of_a_million_characters_written_as_escapes_is_taken(
    http: httpx2.AsyncClient, docs_indexer: Owner
) -> None:
    docs_indexer.answer(pages.CreatePage, SUMMARY)
    content = b'{"path":"a.md","body":"' + b"\\ud83c\\udff9" * 1_000_000 + b'"}'

    answer = await http.post(f"{PATH}/page", content=content, headers={"content-type": "application/json"})

    assert answer.status_code == 201
    assert docs_indexer.last().page.body == "🏹" * 1_000_000


async def test_a_search_is_passed_on_whole_whatever_is_asked(http: httpx2.AsyncClient, docs_indexer: Owner) -> None:
    part = search.SnippetPart(text="x", marked=True)
    hit = search.DocHit(
        workspace_id="w1", page_id="p1", path="a.md", title="A", heading=["A"], anchor="a", snippet=[part], score=1.5
    )
    docs_indexer.answer(search.SearchDocs, search.DocHits(items=[hit], corrected=["x → y"]))

    odd = "'; drop table pages; -- & | ! %"
    answer = await http.get("/api/docs/search", params={"q": odd, "workspaceId": "w1", "folder": "a", "limit": 5})
    asked = docs_indexer.last()
    bad = [
        await http.get(f"/api/docs/search?{query}") for query in ("", "q=x&limit=51", "q=x&workspaceId=a.b", "q=x&k=1")
    ]

    assert (asked.q, asked.workspace_id, asked.folder, asked.limit) == (odd, "w1", "a", 5)
    assert answer.json() == {"items": [hit.wire()], "nextCursor": None, "corrected": ["x → y"]}
    assert [each.status_code for each in bad] == [422] * 4
