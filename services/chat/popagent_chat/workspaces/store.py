"""Rows of workspaces."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query
from popagent_proto.chat.workspaces import WorkspaceView

LIST: Final = Query(
    WorkspaceView,
    """
    select id, name, path, is_default, created_at, revision
    from workspaces
    where $1::text is null or (not is_default and (name, id) > (select w.name, w.id from workspaces w where w.id = $1))
    order by is_default desc, name, id
    limit $2
    """,
)

GET: Final = Query(
    WorkspaceView,
    "select id, name, path, is_default, created_at, revision from workspaces where id = $1",
)

DEFAULT: Final = Query(
    WorkspaceView,
    "select id, name, path, is_default, created_at, revision from workspaces where is_default",
)

BY_PATH: Final = Query(
    WorkspaceView,
    "select id, name, path, is_default, created_at, revision from workspaces where path = $1",
)

# Whoever is about to refer to it keeps it from being deleted until then.
HOLD: Final = Query(WorkspaceView, f"{GET.sql} for key share")

HOLD_DEFAULT: Final = Query(WorkspaceView, f"{DEFAULT.sql} for key share")

LOCK: Final = Query(WorkspaceView, f"{GET.sql} for update")

RENAME: Final = Query(
    WorkspaceView,
    """
    update workspaces set name = $2, revision = revision + 1
    where id = $1
    returning id, name, path, is_default, created_at, revision
    """,
)

DELETE: Final = Query(None, "delete from workspaces where id = $1")

PATHS: Final = Query(str, "select path from workspaces")

INSERT: Final = Query(
    WorkspaceView,
    """
    insert into workspaces (id, name, path, is_default, revision)
    values ($1, $2, $3, false, 0)
    on conflict do nothing
    returning id, name, path, is_default, created_at, revision
    """,
)

# Any constant: who asks for a clone holds it until its job is stored.
LOCK_CLONES: Final = Query(str, "select pg_advisory_xact_lock(1668247393)::text")
