"""The one row of the model connection, with its sealed key."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query
from popagent_runs.models.choice import NAME, RESOURCE, StoredConnection

GET: Final = Query(
    StoredConnection,
    f"""
    select c.url, c.revision, encode(s.sealed, 'hex') as sealed
    from model_connection c
    left join secrets s on s.resource = '{RESOURCE}' and s.name = '{NAME}'
    """,
)

LOCK: Final = Query(StoredConnection, f"{GET.sql} for update of c")

SAVE: Final = Query(
    int,
    """
    insert into model_connection (id, url, revision, updated_at)
    values (true, $1, 1, clock_timestamp())
    on conflict (id)
    do update set url = excluded.url, revision = model_connection.revision + 1, updated_at = clock_timestamp()
    returning revision
    """,
)
