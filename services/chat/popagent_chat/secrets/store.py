"""Rows of sealed secrets; nothing here sees a value."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query

PUT: Final = Query(
    None,
    """
    insert into secrets (resource, name, key_id, sealed)
    values ($1, $2, $3, $4)
    on conflict (resource, name)
    do update set key_id = excluded.key_id, sealed = excluded.sealed, updated_at = clock_timestamp()
    """,
)

DROP: Final = Query(None, "delete from secrets where resource = $1 and name = $2")

# Sealed with another key than $1; all of them when that is null.
UNREADABLE: Final = Query(int, "select count(*) from secrets where key_id is distinct from $1::bytea")
