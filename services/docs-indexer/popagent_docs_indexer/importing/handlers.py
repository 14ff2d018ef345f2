"""Import as a job, export page by page, and how far jobs are."""

from __future__ import annotations

import uuid
from typing import Final

from popagent_bus import Handlers
from popagent_docs_indexer import library
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.importing import store
from popagent_docs_indexer.importing.carrying_out import KIND
from popagent_docs_indexer.paths import folder_path, page_path
from popagent_docs_indexer.tree import store as tree
from popagent_kit.errors import KeyUsedError, UnsupportedMediaTypeError
from popagent_proto.common import JobList, JobNotFoundError, JobView
from popagent_proto.docs_indexer.imports import (
    MARKDOWN,
    ZIP,
    DocsJobChanged,
    ExportDocs,
    ExportedPages,
    GetDocsJob,
    ImportDocs,
    ListDocsJobs,
)
from popagent_proto.docs_indexer.tree import FolderNotFoundError
from popagent_rows.jobs import JobNews
from popagent_rows.outbox import Outbox

handlers: Handlers[DocsDeps] = Handlers()

_BY_COMMAND: Final = uuid.UUID("0b0f5a86-7a4e-4a35-9b1d-6c1f9f0f2f55")
# Of one answer: bytes before its last page, each of which may be written as six, and pages.
EXPORTED_BYTES: Final = 300_000
EXPORTED_PAGES: Final = 200


@handlers.answers(ImportDocs)
async def import_docs(deps: DocsDeps, command: ImportDocs) -> JobView:
    """Store the job; it is looked into what is in the file when it begins."""
    if command.file.media_type not in (ZIP, MARKDOWN):
        raise UnsupportedMediaTypeError(f"Send {ZIP} or {MARKDOWN}.")
    into = None if command.into is None else folder_path(command.into, field="into").text
    if command.file.media_type == MARKDOWN:
        page_path(command.name, field="name")
    asked = {
        "workspaceId": command.workspace_id,
        "file": command.file.wire(),
        "name": command.name,
        "source": command.source or command.name,
        "into": into,
    }
    job_id = deps.jobs.id_of(uuid.uuid5(_BY_COMMAND, command.command_id))
    async with library.adding(deps, command.workspace_id) as (conn, _):
        known = await deps.jobs.get(conn, job_id)
        if known is not None:
            stored = await deps.jobs.input_of(conn, job_id)
            # A command that is sent again has put its file there again.
            if stored["file"]["sha256"] != command.file.sha256 or {**stored, "file": asked["file"]} != asked:
                raise KeyUsedError
            return known
        title = f"Import {command.name}"
        job = await deps.jobs.enqueue(conn, KIND, asked, job_id=job_id, title=title, about=command.workspace_id)
    deps.jobs.worker.wake()
    return job


@handlers.answers(ExportDocs)
async def export_docs(deps: DocsDeps, query: ExportDocs) -> ExportedPages:
    """Return one part of it."""
    folder = None if query.folder is None else folder_path(query.folder, field="folder")
    bounds = (query.cursor, EXPORTED_BYTES, EXPORTED_PAGES)
    async with deps.pool.acquire() as conn:
        if folder is None:
            items = await store.EXPORT.all(conn, query.workspace_id, None, *bounds)
            known = bool(items) or await library.IS_KNOWN.value(conn, query.workspace_id)
        else:
            if not await tree.IS_FOLDER.value(conn, query.workspace_id, folder.text):
                raise FolderNotFoundError
            items = await store.EXPORT_BELOW.all(conn, query.workspace_id, folder.text, *bounds)
            known = True
    if not known:
        await library.require_workspace(deps, query.workspace_id)
    return ExportedPages(items=items, next_cursor=items[-1].path if items else None)


@handlers.answers(GetDocsJob)
async def get_job(deps: DocsDeps, query: GetDocsJob) -> JobView:
    """Return it as it is stored."""
    async with deps.pool.acquire() as conn:
        found = await deps.jobs.get(conn, query.job_id)
    if found is None:
        raise JobNotFoundError
    return found


@handlers.answers(ListDocsJobs)
async def list_jobs(deps: DocsDeps, _: ListDocsJobs) -> JobList:
    """Return the newest."""
    async with deps.pool.acquire() as conn:
        return JobList(items=await deps.jobs.newest(conn))


def news(outbox: Outbox) -> JobNews:
    """Return how followers hear of the jobs of docs-indexer."""
    return JobNews(outbox, lambda job, version: DocsJobChanged(aggregate_id=job.id, version=version, job=job))
