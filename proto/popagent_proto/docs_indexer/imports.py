"""Pages from elsewhere, and all of them back again; and the jobs of docs-indexer, of which an import is one."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View
from popagent_proto.common import BlobRef, JobQuery, JobsQuery, JobView
from popagent_proto.docs_indexer.pages import PathText

ZIP: Final = "application/zip"
MARKDOWN: Final = "text/markdown"

FileName = Annotated[Line, Field(min_length=1, max_length=255, description="Of what is imported, as it was chosen.")]
SourceName = Annotated[
    Line,
    Field(min_length=1, max_length=200, description="What it is a later state of; else the name of the file."),
]


class ImportDocs(Command[JobView]):
    """Begin to import a zip of Markdown files, or one file. The same command gives the same job.

    What was imported from the same source before is brought up to date, unless it was changed here as well. `archived`
    notes and what is no Markdown is left out. The job's result counts what became of the files. 422 when the zip leads
    out of itself, has links, or is none: then nothing of it is imported.
    """

    subject: ClassVar = "popagent.docs-indexer.cmd.imports-run.v1"

    command_id: Id
    workspace_id: Id
    file: BlobRef
    name: FileName
    source: SourceName | None = None
    into: PathText | None = Field(default=None, description="A folder; by default the root.")


class ExportedPage(View):
    """A page as it is written into a file."""

    path: str
    body: str
    updated_at: Moment


class ExportedPages(ListView):
    """By path; as many as fit."""

    items: list[ExportedPage]


class ExportDocs(Query[ExportedPages]):
    """The pages of a workspace, or those below a folder, with their texts."""

    subject: ClassVar = "popagent.docs-indexer.qry.exports-read.v1"

    workspace_id: Id
    folder: PathText | None = None
    cursor: Text | None = Field(default=None, max_length=4_096)


class GetDocsJob(JobQuery):
    """How far a job of docs-indexer is."""

    subject: ClassVar = "popagent.docs-indexer.qry.jobs-get.v1"


class ListDocsJobs(JobsQuery):
    """The newest jobs of docs-indexer."""

    subject: ClassVar = "popagent.docs-indexer.qry.jobs-list.v1"


class DocsJobChanged(Event):
    """A job of docs-indexer was stored, came further, or ended; told a few times a second at most."""

    subject: ClassVar = "popagent.docs-indexer.evt.jobs-changed.v1"

    job: JobView
