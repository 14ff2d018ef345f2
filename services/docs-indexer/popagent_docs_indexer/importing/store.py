"""Pages by what they were imported from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from popagent_db.query import Query
from popagent_docs_indexer.tree.store import BELOW
from popagent_proto.docs_indexer.imports import ExportedPage


@dataclass(frozen=True)
class Imported:
    """A page as an import sees it."""

    id: str
    path: str
    revision: str
    source_id: str | None
    source_revision: str | None


_FOUND: Final = "select id, path, revision, source_id, source_revision from pages where workspace_id = $1"
BY_SOURCE: Final = Query(Imported, f"{_FOUND} and source_id = $2 and deleted_at is null")
BY_PATH: Final = Query(Imported, f"{_FOUND} and path = $2 and deleted_at is null")
SET_SOURCE: Final = Query(None, "update pages set source_id = $2, source_revision = $3 where id = $1")


def _exported(where: str) -> str:
    # What is before a page counts, so that a long one comes, too.
    return f"""
    select path, body, updated_at from (
        select path, body, updated_at, sum(octet_length(body)) over (order by path) - octet_length(body) as before
        from pages
        where {where} and deleted_at is null and ($3::text is null or path > $3)
        order by path
        limit $5
    ) t
    where before < $4::bigint
    order by path
    """


EXPORT: Final = Query(ExportedPage, _exported("workspace_id = $1 and $2::text is null"))
EXPORT_BELOW: Final = Query(ExportedPage, _exported(BELOW))
