"""The documentation of a workspace as a zip, written while it is read."""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

from starlette.responses import Response, StreamingResponse

from popagent_bus import Bus
from popagent_gateway.export.download import disposition
from popagent_proto.docs_indexer.imports import ZIP, ExportDocs, ExportedPages
from popagent_proto.docs_indexer.tree import DocsTree, ListDocs

# Zips know no earlier time.
FIRST_YEAR: Final = 1980
FILE_MODE: Final = 0o100644
FOLDER_MODE: Final = 0o040755


class _Written:
    """Takes what a zip consists of, from the beginning to the end, and gives it away piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: it is given away at once."""

    def close(self) -> None:
        """Do nothing."""

    def taken(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


async def download_docs(bus: Bus, workspace_id: str, folder: str | None) -> Response:
    """Return the answer; what is asked for later and fails then cuts it off.

    Raises:
        NotFoundError: No such workspace or folder.
    """
    tree = await bus.ask(ListDocs(workspace_id=workspace_id, folder=folder))
    first = await bus.ask(ExportDocs(workspace_id=workspace_id, folder=folder))
    name = (folder or "documentation").rpartition("/")[2]
    headers = {"content-disposition": disposition(name, "zip")}
    return StreamingResponse(_zip(bus, workspace_id, folder, tree, first), media_type=ZIP, headers=headers)


async def _zip(
    bus: Bus, workspace_id: str, folder: str | None, tree: DocsTree, part: ExportedPages
) -> AsyncIterator[bytes]:
    written = _Written()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        while True:
            for entry in tree.items:
                if entry.kind == "folder":
                    archive.writestr(_member(f"{entry.path}/", datetime.now(UTC), FOLDER_MODE), b"")
            if tree.next_cursor is None:
                break
            tree = await bus.ask(ListDocs(workspace_id=workspace_id, folder=folder, cursor=tree.next_cursor))
        while True:
            for page in part.items:
                archive.writestr(_member(page.path, page.updated_at, FILE_MODE), page.body.encode())
                yield written.taken()
            if part.next_cursor is None:
                break
            part = await bus.ask(ExportDocs(workspace_id=workspace_id, folder=folder, cursor=part.next_cursor))
    yield written.taken()


def _member(path: str, at: datetime, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(path, at.timetuple()[:6] if at.year >= FIRST_YEAR else (FIRST_YEAR, 1, 1, 0, 0, 0))
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
