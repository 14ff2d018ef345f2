"""Rows of pages and of the texts that they had."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from popagent_db.query import Query
from popagent_proto.docs_indexer.pages import DeletedPage, PageSummary, PageVersion, PageVersionView, PageView


class StoredPage(PageView):
    """A page as it lies there, deleted or not."""

    written_version: int
    deleted_at: datetime | None

    def summary(self) -> PageSummary:
        """Return it without its text."""
        return PageSummary(**{name: getattr(self, name) for name in PageSummary.model_fields})


SUMMARY: Final = "id, workspace_id, path, title, revision, version, characters, source_id, created_at, updated_at"
LIVE: Final = "workspace_id = $1 and path = $2 and deleted_at is null"

VIEW: Final = Query(PageView, f"select {SUMMARY}, body from pages where {LIVE}")
GET: Final = Query(PageSummary, f"select {SUMMARY} from pages where {LIVE}")
BY_ID: Final = Query(PageSummary, f"select {SUMMARY} from pages where workspace_id = $1 and id = $2")
# An id is given once, whatever the workspace.
STORED: Final = Query(StoredPage, f"select {SUMMARY}, body, written_version, deleted_at from pages where id = $1")

INSERT: Final = Query(
    PageSummary,
    f"""
    insert into pages (id, workspace_id, path, key, title, body, revision, characters)
    values ($1, $2, $3, $4, $5, $6, $7, length($6))
    returning {SUMMARY}
    """,
)
KEEP_VERSION: Final = Query(
    None,
    """
    insert into page_versions (page_id, version, path, body, revision, characters, written_at)
    select id, written_version, path, body, revision, characters, written_at from pages where id = $1
    """,
)
DROP_OLD_VERSIONS: Final = Query(
    None,
    """
    delete from page_versions
    where page_id = $1
        and version <= (select version from page_versions where page_id = $1 order by version desc offset $2 limit 1)
    """,
)
WRITE: Final = Query(
    PageSummary,
    f"""
    update pages
    set body = $2, revision = $3, title = $4, characters = length($2), version = version + 1,
        written_version = version + 1, written_at = clock_timestamp(), updated_at = clock_timestamp()
    where id = $1
    returning {SUMMARY}
    """,
)
MOVE: Final = Query(
    PageSummary,
    f"""
    update pages
    set path = $2, key = $3, title = $4, version = version + 1, updated_at = clock_timestamp()
    where id = $1
    returning {SUMMARY}
    """,
)
SET_TITLE: Final = Query(None, "update pages set title = $2 where id = $1 and title <> $2")
DELETE: Final = Query(
    None,
    "update pages set deleted_at = clock_timestamp(), version = version + 1 where id = $1 and deleted_at is null",
)
# Another page may have come from the same source in the meantime.
UNDELETE: Final = Query(
    PageSummary,
    f"""
    update pages
    set deleted_at = null, version = version + 1, updated_at = clock_timestamp(),
        source_id = case
            when exists (
                select 1 from pages other
                where other.workspace_id = pages.workspace_id and other.source_id = pages.source_id
                    and other.deleted_at is null
            ) then null
            else source_id
        end
    where id = $1
    returning {SUMMARY}
    """,
)

_VERSIONS: Final = """
    select version, path, revision, characters, written_at, false as is_current, body
    from page_versions
    where page_id = $1
    union all
    select written_version, path, revision, characters, written_at, deleted_at is null, body
    from pages
    where id = $1
"""
HISTORY: Final = Query(
    PageVersion,
    f"""
    select version, path, revision, characters, written_at, is_current
    from ({_VERSIONS}) v
    where $2::integer is null or version < $2
    order by version desc
    limit $3
    """,
)
VERSION: Final = Query(PageVersionView, f"select * from ({_VERSIONS}) v where version = $2")

DELETED: Final = Query(
    DeletedPage,
    """
    select id, path, title, written_version as version, characters, deleted_at
    from pages
    where workspace_id = $1 and deleted_at is not null
        and ($2::timestamptz is null or (deleted_at, id) < ($2, $3::text))
    order by deleted_at desc, id desc
    limit $4
    """,
)
PRUNE: Final = Query(
    None,
    """
    delete from pages
    where id in (select id from pages where deleted_at < now() - $1::interval limit $2)
    """,
)
