"""The import itself: each file becomes a page, or brings the one up to date that came from it before."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal, TypeVar

from popagent_bus import blobs
from popagent_db.pool import Connection
from popagent_docs_indexer import library
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.importing import store
from popagent_docs_indexer.importing.archive import File, Folder, LeftOut, count, members
from popagent_docs_indexer.importing.store import Imported
from popagent_docs_indexer.pages import store as pages
from popagent_docs_indexer.pages.handlers import revision_of
from popagent_docs_indexer.paths import DocPath, folder_path, page_path
from popagent_docs_indexer.search.index import PageIndex, index_of, put_index
from popagent_docs_indexer.tree import store as tree
from popagent_docs_indexer.tree.handlers import tree_event
from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto.common import BlobRef
from popagent_proto.docs_indexer.pages import KEPT_VERSIONS, PagePathTakenError
from popagent_rows.jobs import Job

T = TypeVar("T")

KIND: Final = "docs-import"
AT_ONCE: Final = 20
MOST_NOTES: Final = 50

Outcome = Literal["created", "updated", "unchanged", "kept", "leftOut", "folders"]


@dataclass(frozen=True)
class Ready:
    """A file that can become a page."""

    path: DocPath
    text: str
    source_id: str
    revision: str
    index: PageIndex


@dataclass
class Tally:
    """What became of the files; `notes` say why some did not become pages."""

    counts: Counter[Outcome] = field(default_factory=Counter)
    notes: list[dict[str, str]] = field(default_factory=list)

    def note(self, outcome: Outcome, path: str, reason: str) -> None:
        """Count, and remember the reason of the first ones."""
        self.counts[outcome] += 1
        if len(self.notes) < MOST_NOTES:
            self.notes.append({"path": path[:300], "reason": reason})

    def result(self) -> dict[str, Any]:
        """Return what the job tells."""
        names: tuple[Outcome, ...] = ("created", "updated", "unchanged", "kept", "leftOut")
        return {**{name: self.counts[name] for name in names}, "notes": self.notes}


async def carry_out(deps: DocsDeps, job: Job) -> dict[str, Any]:
    """Import the file of a job; what an attempt before had done is there already."""
    asked = job.input
    file = BlobRef.model_validate(asked["file"])
    data = await blobs.get(deps.bus, file)
    total = await asyncio.to_thread(count, data, file.media_type)
    found = members(data, asked["name"], file.media_type)
    tally, done = Tally(), 0
    while batch := await asyncio.to_thread(_taken, found, asked):
        await _store(deps, job, batch, tally)
        done += len(batch)
        await job.report(min(done / total, 1.0), f"{done:,} of {total:,} files")
    return tally.result()


def _taken(found: Iterator[File | Folder | LeftOut], asked: dict[str, Any]) -> list[Ready | Folder | LeftOut]:
    return [_ready(each, asked) for each in islice(found, AT_ONCE)]


def _ready(each: File | Folder | LeftOut, asked: dict[str, Any]) -> Ready | Folder | LeftOut:
    if isinstance(each, LeftOut):
        return each
    place = f"{asked['into']}/{each.path}" if asked["into"] else each.path
    try:
        if isinstance(each, Folder):
            return Folder(folder_path(place).text)
        path = page_path(place)
    except InvalidInputError as refused:
        return LeftOut(each.path, refused.message)
    source_id = f"note:{each.note_id}" if each.note_id else f"{asked['source']}/{each.path}"
    return Ready(path, each.text, source_id, revision_of(each.text), index_of(each.text, path))


async def _store(deps: DocsDeps, job: Job, batch: list[Ready | Folder | LeftOut], tally: Tally) -> None:
    workspace_id = job.input["workspaceId"]
    before = sum(tally.counts[name] for name in _CHANGES)
    async with library.adding(deps, workspace_id) as (conn, version):
        await job.lease.fence(conn)
        for each in batch:
            if isinstance(each, LeftOut):
                tally.note("leftOut", each.path, each.reason)
            elif isinstance(each, Folder):
                await _make_folder(conn, workspace_id, each, tally)
            else:
                await _import(conn, workspace_id, each, tally)
        if sum(tally.counts[name] for name in _CHANGES) > before:
            event = tree_event(workspace_id, version, "imported", job.input["into"] or "")
            await deps.outbox.add(conn, event)


_CHANGES: Final[tuple[Outcome, ...]] = ("created", "updated", "folders")


async def _make_folder(conn: Connection, workspace_id: str, folder: Folder, tally: Tally) -> None:
    path = folder_path(folder.path)
    if await tree.IS_FOLDER.value(conn, workspace_id, path.text):
        return
    try:
        async with conn.transaction():
            await library.claim(conn, workspace_id, path)
            await library.ADD_FOLDERS.run(conn, workspace_id, [path.text], [path.key])
    except PagePathTakenError as taken:
        tally.note("leftOut", path.text, taken.message)
        return
    tally.counts["folders"] += 1


async def _import(conn: Connection, workspace_id: str, file: Ready, tally: Tally) -> None:
    known = await store.BY_SOURCE.first(conn, workspace_id, file.source_id)
    if known is None:
        await _add(conn, workspace_id, file, tally)
    elif file.revision in (known.source_revision, known.revision):
        await store.SET_SOURCE.run(conn, known.id, file.source_id, file.revision)
        tally.counts["unchanged"] += 1
    elif known.revision == known.source_revision:
        await _bring_up_to_date(conn, workspace_id, known, file)
        tally.counts["updated"] += 1
    else:
        tally.note("kept", known.path, "It was changed here and at its source.")


async def _add(conn: Connection, workspace_id: str, file: Ready, tally: Tally) -> None:
    there = await store.BY_PATH.first(conn, workspace_id, file.path.text)
    if there is not None and there.source_id is None and there.revision == file.revision:
        await store.SET_SOURCE.run(conn, there.id, file.source_id, file.revision)
        tally.counts["unchanged"] += 1
        return
    try:
        async with conn.transaction():
            await library.claim(conn, workspace_id, file.path)
    except PagePathTakenError as taken:
        tally.note("kept", file.path.text, taken.message)
        return
    path, title = file.path, file.index.title
    page = await pages.INSERT.one(conn, new_id(), workspace_id, path.text, path.key, title, file.text, file.revision)
    await store.SET_SOURCE.run(conn, page.id, file.source_id, file.revision)
    await put_index(conn, workspace_id, page.id, file.index, is_new=True)
    tally.counts["created"] += 1


async def _bring_up_to_date(conn: Connection, workspace_id: str, known: Imported, file: Ready) -> None:
    """Write the new text where the page is now; its name may give its title."""
    index = index_of(file.text, page_path(known.path)) if known.path != file.path.text else file.index
    await pages.KEEP_VERSION.run(conn, known.id)
    await pages.WRITE.one(conn, known.id, file.text, file.revision, index.title)
    await pages.DROP_OLD_VERSIONS.run(conn, known.id, KEPT_VERSIONS - 1)
    await store.SET_SOURCE.run(conn, known.id, file.source_id, file.revision)
    await put_index(conn, workspace_id, known.id, index)
