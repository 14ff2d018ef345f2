"""Documentation of a workspace: its pages and folders, and what they were before."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from popagent_bus import blobs
from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.export.docs_zip import download_docs
from popagent_gateway.jobs import accepted
from popagent_gateway.paging import DocsPart, ImportPlace, Page
from popagent_kit.ids import Id
from popagent_proto.common import JobView
from popagent_proto.docs_indexer.imports import MARKDOWN, ZIP, ImportDocs
from popagent_proto.docs_indexer.pages import (
    CreatePage,
    CreatePageBody,
    DeletedPages,
    DeletePage,
    GetPage,
    GetPageVersion,
    ListDeletedPages,
    MoveBody,
    PageDeletedView,
    PageHistory,
    PageSummary,
    PageVersionView,
    PageView,
    PathText,
    ReadHistory,
    RestoreBody,
    RestorePage,
    Revision,
    WritePage,
    WritePageBody,
)
from popagent_proto.docs_indexer.search import DocHits, SearchDocs
from popagent_proto.docs_indexer.tree import (
    DeleteFolder,
    DocsTree,
    FolderBody,
    FolderDeletedView,
    FolderView,
    ListDocs,
    MakeFolder,
    MoveDocs,
    MovedView,
)

router = APIRouter(prefix="/api/workspaces/{id}/docs", tags=["docs"], route_class=JsonRoute)
search = APIRouter(prefix="/api/docs/search", tags=["docs"], route_class=JsonRoute)

UPLOAD: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (ZIP, MARKDOWN)},
    }
}
FILE: Final[dict[int | str, dict[str, Any]]] = {200: {"description": "A zip.", "content": {ZIP: {}}}}

# As PathId.
PageId: TypeAlias = Annotated[Id, Path(alias="pageId")]
Version: TypeAlias = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("")
async def list_docs(bus: Bus, id: PathId, part: Annotated[DocsPart, Query()]) -> DocsTree:  # noqa: A002
    """List folders and pages by path, all or those below a folder."""
    return await bus.ask(ListDocs(workspace_id=id, **part.model_dump()))


@router.get("/page")
async def get_page(bus: Bus, id: PathId, path: Annotated[PathText, Query()]) -> PageView:  # noqa: A002
    """Read a page; its revision goes with the next write or deletion."""
    return await bus.ask(GetPage(workspace_id=id, path=path))


@router.post("/page", status_code=201)
async def create_page(bus: Bus, id: PathId, body: CreatePageBody, command_id: CommandId) -> PageSummary:  # noqa: A002
    """Make a page, and the folders above it."""
    return await bus.ask(CreatePage(command_id=command_id, workspace_id=id, page=body))


@router.put("/page")
async def write_page(bus: Bus, id: PathId, body: WritePageBody) -> PageSummary:  # noqa: A002
    """Replace the text of a page; 409 with the stored `page` when it has another revision."""
    return await bus.ask(WritePage(workspace_id=id, page=body))


@router.delete("/page")
async def delete_page(
    bus: Bus,
    id: PathId,  # noqa: A002
    path: Annotated[PathText, Query()],
    revision: Annotated[Revision, Query()],
) -> PageDeletedView:
    """Delete a page; it can be brought back for thirty days."""
    return await bus.ask(DeletePage(workspace_id=id, path=path, revision=revision))


@router.post("/move")
async def move_docs(bus: Bus, id: PathId, body: MoveBody) -> MovedView:  # noqa: A002
    """Move or rename a page, or a folder with all that is in it."""
    return await bus.ask(MoveDocs(workspace_id=id, move=body))


@router.post("/folders", status_code=201)
async def make_folder(bus: Bus, id: PathId, body: FolderBody) -> FolderView:  # noqa: A002
    """Make a folder and those above it; one that is there is no error."""
    return await bus.ask(MakeFolder(workspace_id=id, path=body.path))


@router.delete("/folders")
async def delete_folder(
    bus: Bus,
    id: PathId,  # noqa: A002
    path: Annotated[PathText, Query()],
    revision: Annotated[Revision | None, Query()] = None,
) -> FolderDeletedView:
    """Delete a folder; 409 `folder_not_empty` tells the `revision` with which it goes with all that is in it."""
    return await bus.ask(DeleteFolder(workspace_id=id, path=path, revision=revision))


@router.get("/deleted")
async def list_deleted(bus: Bus, id: PathId, page: Annotated[Page, Query()]) -> DeletedPages:  # noqa: A002
    """List pages that can be brought back, the newest first."""
    return await bus.ask(ListDeletedPages(workspace_id=id, **page.model_dump()))


@router.get("/pages/{pageId}/history")
async def read_history(
    bus: Bus,
    id: PathId,  # noqa: A002
    page_id: PageId,
    page: Annotated[Page, Query()],
) -> PageHistory:
    """List the texts of a page, the newest first."""
    return await bus.ask(ReadHistory(workspace_id=id, page_id=page_id, **page.model_dump()))


@router.get("/pages/{pageId}/history/{version}")
async def get_version(bus: Bus, id: PathId, page_id: PageId, version: Version) -> PageVersionView:  # noqa: A002
    """Read a text that a page had."""
    return await bus.ask(GetPageVersion(workspace_id=id, page_id=page_id, version=version))


@router.post("/pages/{pageId}/restore")
async def restore_page(bus: Bus, id: PathId, page_id: PageId, body: RestoreBody) -> PageSummary:  # noqa: A002
    """Make an old text the newest one, and bring back a page that was deleted."""
    return await bus.ask(RestorePage(workspace_id=id, page_id=page_id, asked=body))


@router.post("/import", status_code=202, response_model=JobView, openapi_extra=UPLOAD)
async def import_docs(
    request: Request,
    bus: Bus,
    id: PathId,  # noqa: A002
    command_id: CommandId,
    query: Annotated[ImportPlace, Query()],
) -> Response:
    """Import a zip of Markdown files, or one file; again, it brings up to date what came from the same source."""
    media_type = request.headers["content-type"].partition(";")[0].strip().lower()
    file = await blobs.put(bus, request.stream(), media_type=media_type)
    command = ImportDocs(command_id=command_id, workspace_id=id, file=file, **query.model_dump())
    return accepted(await bus.ask(command))


@router.get("/export", response_class=Response, responses=FILE)
async def export_docs(bus: Bus, id: PathId, folder: Annotated[PathText | None, Query()] = None) -> Response:  # noqa: A002
    """Download all pages, or those below a folder, as a zip; imported again, it is the same tree."""
    return await download_docs(bus, id, folder)


@search.get("")
async def search_docs(bus: Bus, query: Annotated[SearchDocs, Query()]) -> DocHits:
    """Search the documentation of one workspace, or of all of them: sections, the best first."""
    return await bus.ask(query)
