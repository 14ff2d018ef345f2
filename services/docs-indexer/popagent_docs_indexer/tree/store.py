"""Statements over the folders of a workspace and all that is below one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from popagent_db.query import Query
from popagent_proto.docs_indexer.tree import TreeEntry

# What is below the folder $2; a slash comes before the digit 0.
BELOW: Final = "workspace_id = $1 and path > $2 || '/' and path < $2 || '0'"
IN_IT: Final = f"({BELOW} or workspace_id = $1 and path = $2)"

IS_FOLDER: Final = Query(bool, "select exists (select 1 from folders where workspace_id = $1 and path = $2)")


def _listed(where: str) -> str:
    return f"""
    select kind, path, characters, updated_at from (
        (
            select 'folder' as kind, path, null::integer as characters, null::timestamptz as updated_at
            from folders
            where {where} and ($3::text is null or path > $3)
            order by path
            limit $4
        )
        union all
        (
            select 'page', path, characters, updated_at
            from pages
            where {where} and deleted_at is null and ($3::text is null or path > $3)
            order by path
            limit $4
        )
    ) t
    order by path
    limit $4
    """


LIST: Final = Query(TreeEntry, _listed("workspace_id = $1 and $2::text is null"))
LIST_BELOW: Final = Query(TreeEntry, _listed(BELOW))


@dataclass(frozen=True)
class Content:
    """How much is below a folder; `revision` is another one when anything of it is."""

    pages: int
    folders: int
    revision: str


CONTENT: Final = Query(
    Content,
    f"""
    with inside as (
        select path, revision from pages where {BELOW} and deleted_at is null
        union all
        select path, '' from folders where {BELOW}
    )
    select count(*) filter (where revision <> '') as pages, count(*) filter (where revision = '') as folders,
        encode(
            sha256(convert_to(coalesce(string_agg(path || ' ' || revision, E'\\n' order by path), ''), 'UTF8')), 'hex'
        ) as revision
    from inside
    """,
)


@dataclass(frozen=True)
class Extent:
    """The longest path below a folder, in bytes, and the deepest, in slashes; zero of nothing."""

    longest: int
    deepest: int


EXTENT: Final = Query(
    Extent,
    f"""
    select coalesce(max(octet_length(path)), 0) as longest,
        coalesce(max(length(path) - length(replace(path, '/', ''))), 0) as deepest
    from (
        select path from pages where {BELOW} and deleted_at is null
        union all
        select path from folders where {BELOW}
    ) t
    """,
)
# $3 is the key of $2; $4 and $5 are the new path and key. Keys of names stand one after another as names do.
MOVE_FOLDERS: Final = Query(
    None,
    f"""
    update folders
    set path = $4 || substr(path, length($2) + 1), key = $5 || substr(key, length($3::text) + 1)
    where {IN_IT}
    """,
)
MOVE_PAGES: Final = Query(
    None,
    f"""
    update pages
    set path = $4 || substr(path, length($2) + 1), key = $5 || substr(key, length($3::text) + 1),
        version = version + 1, updated_at = clock_timestamp()
    where {BELOW} and deleted_at is null
    """,
)
DELETE_FOLDERS: Final = Query(None, f"delete from folders where {IN_IT}")
DELETE_PAGES: Final = Query(
    None,
    f"""
    update pages set deleted_at = clock_timestamp(), version = version + 1
    where {BELOW} and deleted_at is null
    """,
)
