"""Statements of the log of changes."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query

APPEND: Final = Query(
    None,
    """
    insert into audit_log (at, key_id, method, route, path, status, trace_id)
    select * from unnest(
        $1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::text[]
    )
    """,
)

# In slices, so that a long absence never becomes one long transaction.
DROP_OLD: Final = Query(
    None,
    """
    delete from audit_log
    where id in (select id from audit_log where at < now() - make_interval(days => $1) order by at limit $2)
    """,
)
