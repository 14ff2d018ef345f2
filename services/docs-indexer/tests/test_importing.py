"""What is imported is there once, stays as it was changed, and comes out again as the same tree."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from popagent_bus import blobs
from popagent_docs_indexer.importing.archive import File, Folder, LeftOut, members
from popagent_kit.errors import AppError, InvalidInputError, KeyUsedError, NotFoundError, UnsupportedMediaTypeError
from popagent_kit.ids import new_id
from popagent_proto.common import JobView
from popagent_proto.docs_indexer.imports import MARKDOWN, ZIP, ExportDocs, GetDocsJob, ImportDocs, ListDocsJobs
from popagent_testing.suite_bus import until

from .running import Docs

Refusal = Callable[[type[AppError], Awaitable[Any]], Awaitable[AppError]]
VAULT = {
    "Home.md": "# Home\r\n\nSee [[Birds/Heron]].\r\n",
    "Birds/": "",
    "Birds/Heron.md": "---\ntags: [bird]\n---\nA heron.",
    "Empty/": "",
    "Old.md": "---\narchived: true\n---\nOver.",
    ".obsidian/app.json": "{}",
    ".trash/Gone.md": "gone",
    "photo.png": "x",
}


def zipped(files: Mapping[str, str | bytes], **modes: int) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = modes.get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(info, text)
    return content.getvalue()


async def start(docs: Docs, data: bytes, name: str = "vault.zip", media_type: str = ZIP, **fields: Any) -> JobView:
    file = await blobs.put(docs.bus, data, media_type=media_type)
    given = {"command_id": new_id(), "workspace_id": docs.workspace, "name": name, "source": "vault", **fields}
    return await docs.ask(ImportDocs(file=file, **given))


async def run(docs: Docs, data: bytes, *args: Any, **fields: Any) -> JobView:
    job = await start(docs, data, *args, **fields)

    async def over() -> bool:
        return (await docs.ask(GetDocsJob(job_id=job.id))).state in ("completed", "failed")

    await until(over, 30)
    return await docs.ask(GetDocsJob(job_id=job.id))


def counts(job: JobView) -> dict[str, int]:
    assert job.result is not None, job.error
    return {name: value for name, value in job.result.items() if name != "notes" and value}


async def test_a_vault_becomes_pages_without_what_is_hidden_archived_or_no_markdown(docs: Docs) -> None:
    job = await run(docs, zipped(VAULT))

    assert (job.state, job.progress, job.about, job.title) == ("completed", 1, docs.workspace, "Import vault.zip")
    assert counts(job) == {"created": 2, "leftOut": 4}
    assert {each["path"]: each["reason"] for each in (job.result or {})["notes"]} == {
        "Old.md": "It is archived.",
        ".obsidian/app.json": "It is hidden.",
        ".trash/Gone.md": "It is hidden.",
        "photo.png": "It is no Markdown file.",
    }
    assert await docs.tree() == ["Birds/", "Birds/Heron.md", "Empty/", "Home.md"]
    assert (await docs.read("Home.md")).body == VAULT["Home.md"]
    assert (await docs.read("Home.md")).source_id == "vault/Home.md"
    assert (await docs.events()).count("tree-changed imported") == 1


async def test_the_same_import_again_changes_nothing(docs: Docs) -> None:
    await run(docs, zipped(VAULT))
    before = await docs.read("Home.md")

    again = await run(docs, zipped(VAULT))

    assert counts(again) == {"unchanged": 2, "leftOut": 4}
    assert await docs.read("Home.md") == before


async def test_a_later_state_is_brought_in_and_what_was_changed_here_stays(docs: Docs) -> None:
    await run(docs, zipped({"a.md": "a1", "b.md": "b1", "c.md": "c1", "d.md": "d1"}))
    for name in ("b.md", "c.md"):
        page = await docs.read(name)
        await docs.write(name, f"mine in {name}", page.revision)
    await docs.move("d.md", "moved/d.md")

    later = await run(docs, zipped({"a.md": "a2", "b.md": "b1", "c.md": "c2", "d.md": "d2", "e.md": "e1"}))

    assert counts(later) == {"created": 1, "updated": 2, "unchanged": 1, "kept": 1}
    assert (later.result or {})["notes"] == [{"path": "c.md", "reason": "It was changed here and at its source."}]
    bodies = {path: (await docs.read(path)).body for path in await docs.tree() if path.endswith(".md")}
    assert bodies == {
        "a.md": "a2",
        "b.md": "mine in b.md",
        "c.md": "mine in c.md",
        "moved/d.md": "d2",
        "e.md": "e1",
    }


async def test_a_note_is_known_by_the_id_that_its_front_matter_gives_it(docs: Docs) -> None:
    text = "---\nsource_note_id: 7\n---\n{}"
    await run(docs, zipped({"a.md": text.format("one")}))

    later = await run(docs, zipped({"renamed.md": text.format("two")}), source="elsewhere")

    assert counts(later) == {"updated": 1}
    assert await docs.tree() == ["a.md"]
    assert (await docs.read("a.md")).source_id == "note:7"


async def test_nothing_is_imported_over_a_page_of_somebody_else(docs: Docs) -> None:
    await docs.create("a.md", "mine")
    await docs.create("same.md", "same")

    job = await run(docs, zipped({"A.md": "x", "a.md": "theirs", "same.md": "same", "ok.md": "y"}))

    assert counts(job) == {"created": 1, "unchanged": 1, "kept": 2}
    assert (await docs.read("a.md")).body == "mine"


async def test_a_file_becomes_a_page_in_a_folder_that_is_named(docs: Docs, refusal: Refusal) -> None:
    job = await run(docs, b"# One", "one.md", MARKDOWN, into="notes/new")

    assert counts(job) == {"created": 1}
    assert await docs.tree() == ["notes/", "notes/new/", "notes/new/one.md"]
    for name, into in (("../one.md", None), ("one.txt", None), ("one.md", "../x")):
        await refusal(InvalidInputError, start(docs, b"x", name, MARKDOWN, into=into))
    await refusal(UnsupportedMediaTypeError, start(docs, b"x", "a.png", "image/png"))
    await refusal(NotFoundError, start(docs.elsewhere(known=False), b"x", "one.md", MARKDOWN))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("../x.md", 0o100644),
        ("a/../../x.md", 0o100644),
        ("/etc/x.md", 0o100644),
        ("\\x.md", 0o100644),
        ("C:x.md", 0o100644),
        ("a\\..\\x.md", 0o100644),
        ("link.md", 0o120777),
        ("pipe.md", 0o010644),
    ],
)
async def test_a_zip_that_leads_out_of_itself_is_refused_whole(docs: Docs, name: str, mode: int) -> None:
    job = await run(docs, zipped({"good.md": "x", name: "/etc/passwd"}, **{name: mode}))

    assert job.state == "failed"
    assert "Nothing of it was imported" in (job.error or "")
    assert await docs.tree() == []


@pytest.mark.parametrize("data", [b"", b"no zip", zipped({"a.md": "x"})[:-30], b"PK\x05\x06" + bytes(18)])
async def test_what_is_no_zip_or_an_empty_one_makes_no_page(docs: Docs, data: bytes) -> None:
    job = await run(docs, data)

    assert job.state == "failed" or counts(job) == {}
    assert await docs.tree() == []


def test_files_that_are_no_pages_are_left_out_with_the_reason() -> None:
    found = list(
        members(
            zipped(
                {
                    "long.md": "x" * 1_000_001,
                    "huge.md": "x" * 5_000_000,
                    "latin.md": "\xe9".encode("latin-1"),
                    "nul.md": "a\x00b",
                    "wide.md": "🏹" * 1_000_000,
                    "folder/": "",
                }
            ),
            "a.zip",
            ZIP,
        )
    )

    left = {each.path: each.reason for each in found if isinstance(each, LeftOut)}
    assert left == {
        "long.md": "It has more than 1,000,000 characters.",
        "huge.md": "It has more than 1,000,000 characters.",
        "latin.md": "It is no text in UTF-8.",
        "nul.md": "It has a NUL character.",
    }
    assert [each.path for each in found if isinstance(each, File)] == ["wide.md"]
    assert [each.path for each in found if isinstance(each, Folder)] == ["folder"]


async def test_names_that_are_no_paths_are_left_out_and_the_rest_comes_in(docs: Docs) -> None:
    bad = [" blank.md", "%2e%2e.md", "p\u0430ypal.md", "x" * 300 + ".md"]

    job = await run(docs, zipped(dict.fromkeys(["ok.md", *bad], "x")))

    assert counts(job) == {"created": 1, "leftOut": 4}
    assert await docs.tree() == ["ok.md"]
    assert [each["path"] for each in (job.result or {})["notes"]] == [each[:300] for each in bad]


async def test_an_export_gives_the_same_tree_back(docs: Docs, refusal: Refusal) -> None:
    files = {"a/b/ü.md": "# Ü\r\n", "a/c.md": "", "z.markdown": "\ufeffbom", "big.md": "\x01" * 1_000_000}
    files |= {f"many/{number:03}.md": "x" * 20_000 for number in range(30)}
    await run(docs, zipped(files))

    exported, cursor = {}, None
    while True:
        part = await docs.ask(ExportDocs(workspace_id=docs.workspace, cursor=cursor))
        exported |= {page.path: page.body for page in part.items}
        cursor = part.next_cursor
        if cursor is None:
            break
    folder = await docs.ask(ExportDocs(workspace_id=docs.workspace, folder="a"))

    assert exported == files
    assert [page.path for page in folder.items] == ["a/b/ü.md", "a/c.md"]
    await refusal(NotFoundError, docs.ask(ExportDocs(workspace_id=docs.workspace, folder="none")))
    assert (await docs.ask(ExportDocs(workspace_id=docs.elsewhere().workspace))).items == []


async def test_the_same_command_is_one_job_and_what_is_imported_is_found(docs: Docs, refusal: Refusal) -> None:
    command = new_id()
    first = await start(docs, zipped({"a.md": "heron"}), command_id=command)
    again = await start(docs, zipped({"a.md": "heron"}), command_id=command)
    await refusal(KeyUsedError, start(docs, zipped({"b.md": "egret"}), command_id=command))

    assert first.id == again.id
    assert first.id in [job.id for job in (await docs.ask(ListDocsJobs())).items]
    await refusal(NotFoundError, docs.ask(GetDocsJob(job_id="docs-indexer_none")))
