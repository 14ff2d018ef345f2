"""Documentation as files over HTTP: an upload is handed on while it comes, an export is a zip."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator

import httpx2
import pytest

from popagent_bus import Bus, blobs
from popagent_gateway.bodies import UPLOAD_BYTES
from popagent_kit.clock import now
from popagent_kit.errors import NotFoundError
from popagent_proto.common import JobView
from popagent_proto.docs_indexer import imports, tree

from .conftest import Owner

PATH = "/api/workspaces/w1/docs"
JOB = JobView(id="docs-indexer_1", kind="docs-import", state="queued", progress=0, created_at=now(), updated_at=now())


async def pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 65_536):
        yield bytes(65_536)
    yield bytes(size % 65_536)


async def test_an_upload_is_put_where_its_owner_finds_it_and_answers_a_job(
    http: httpx2.AsyncClient, docs_indexer: Owner, bus: Bus
) -> None:
    docs_indexer.answer(imports.ImportDocs, JOB)

    answer = await http.post(
        f"{PATH}/import",
        params={"name": "notes.zip", "source": "notes", "into": "guide"},
        content=pieces(200_000),
        headers={"content-type": "application/zip", "idempotency-key": "once"},
    )
    asked = docs_indexer.last()

    assert (answer.status_code, answer.headers["location"]) == (202, "/api/jobs/docs-indexer_1")
    assert (asked.command_id, asked.workspace_id, asked.name, asked.source, asked.into) == (
        "once",
        "w1",
        "notes.zip",
        "notes",
        "guide",
    )
    assert (asked.file.size_bytes, asked.file.media_type) == (200_000, "application/zip")
    assert await blobs.get(bus, asked.file) == bytes(200_000)


@pytest.mark.parametrize(
    ("content_type", "query", "status"),
    [
        ("application/json", "name=a.zip", 415),
        ("application/x-zip", "name=a.zip", 415),
        ("application/zip", "", 422),
        ("application/zip", "name=a%0ab.zip", 422),
        ("application/zip", "name=a.zip&path=b", 422),
        ("text/markdown; charset=latin-1", "name=a.md", 415),
    ],
)
async def test_another_upload_is_refused_before_it_is_passed_on(
    http: httpx2.AsyncClient, docs_indexer: Owner, content_type: str, query: str, status: int
) -> None:
    answer = await http.post(f"{PATH}/import?{query}", content=b"x", headers={"content-type": content_type})

    assert answer.status_code == status
    assert docs_indexer.asked == []


async def test_an_upload_that_is_too_large_is_refused_by_its_length_or_as_it_comes(
    http: httpx2.AsyncClient, docs_indexer: Owner
) -> None:
    zipped = {"content-type": "application/zip"}
    announced = {**zipped, "content-length": str(UPLOAD_BYTES + 1)}

    at_once = await http.post(f"{PATH}/import?name=a.zip", content=b"", headers=announced)
    as_it_comes = await http.post(f"{PATH}/import?name=a.zip", content=pieces(UPLOAD_BYTES + 1), headers=zipped)

    assert [(each.status_code, each.json()["code"]) for each in (at_once, as_it_comes)] == [(413, "too_large")] * 2
    assert docs_indexer.asked == []


async def test_an_export_is_a_zip_of_the_tree_over_all_its_parts(http: httpx2.AsyncClient, docs_indexer: Owner) -> None:
    def pages(query: imports.ExportDocs) -> imports.ExportedPages:
        names = {None: ["a.md"], "a.md": ["b/ü.md"]}.get(query.cursor, [])
        items = [imports.ExportedPage(path=name, body=f"# {name}\r\n", updated_at=now()) for name in names]
        return imports.ExportedPages(items=items, next_cursor=names[-1] if names else None)

    entries = [tree.TreeEntry(kind="folder", path=path) for path in ("b", "empty")]
    docs_indexer.answer(tree.ListDocs, tree.DocsTree(items=entries))
    docs_indexer.answer(imports.ExportDocs, pages)

    answer = await http.get(f"{PATH}/export", params={"folder": "b"})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
        text = archive.read("b/ü.md").decode()

    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="b.zip"' in answer.headers["content-disposition"]
    assert names == ["b/", "empty/", "a.md", "b/ü.md"]
    assert text == "# b/ü.md\r\n"


async def test_an_export_of_what_is_not_there_is_refused(http: httpx2.AsyncClient, docs_indexer: Owner) -> None:
    docs_indexer.answer(tree.ListDocs, NotFoundError())

    assert (await http.get(f"{PATH}/export")).status_code == 404
