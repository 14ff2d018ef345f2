"""A workspace that is about to be deleted is closed at whoever keeps work, so that none is stored after a count."""

from __future__ import annotations

from typing import Final

import asyncpg

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_kit.errors import UnavailableError
from popagent_proto.common import CLOSED_S

# Who holds rows of the table that long is no reason to hold up everybody else.
LOCK_TIMEOUT: Final = "2s"
BUSY: Final = "Too much is being stored at this moment."
RETRY_AFTER_S: Final = 5.0

CLOSE: Final = Query(
    None,
    """
    insert into closed_workspaces (workspace_id, closed_by, until)
    values ($1, $2, clock_timestamp() + make_interval(secs => $3))
    on conflict (workspace_id, closed_by) do update set until = excluded.until
    """,
)
OPEN: Final = Query(
    None,
    "delete from closed_workspaces where (workspace_id = $1 and closed_by = $2) or until < clock_timestamp()",
)


def is_closed(workspace_id: str) -> str:
    """Return the SQL condition; the argument is an expression."""
    of_it = f"c.workspace_id = {workspace_id} and c.until > clock_timestamp()"
    return f"exists (select 1 from closed_workspaces c where {of_it})"  # noqa: S608 (constants of the services)


async def close(pool: Pool, workspace_id: str, closed_by: str, *, lock: Query[None], count: Query[int]) -> int:
    """Close the workspace and return how many rows refer to it; what was being stored is waited for.

    `lock` must conflict with storing a row, and whoever stores one look after it has got past that lock.

    Raises:
        UnavailableError: Somebody is storing rows for so long that nobody can be kept waiting.
    """
    async with pool.transaction() as conn:
        await conn.execute(f"set local lock_timeout = '{LOCK_TIMEOUT}'")
        try:
            await lock.run(conn)
        except asyncpg.LockNotAvailableError as error:
            raise UnavailableError(BUSY, retry_after_s=RETRY_AFTER_S) from error
        await CLOSE.run(conn, workspace_id, closed_by, CLOSED_S)
    async with pool.acquire() as conn:
        return await count.value(conn, workspace_id)


async def reopen(pool: Pool, workspace_id: str, closed_by: str) -> None:
    """Take work in it again; closings that are over are forgotten."""
    async with pool.acquire() as conn:
        await OPEN.run(conn, workspace_id, closed_by)
