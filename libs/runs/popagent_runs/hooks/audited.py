"""The audit of hooks as it is read and kept small: thirty days, and ten thousand runs of a session or a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from popagent_db.pool import Connection, Pool
from popagent_db.query import Query
from popagent_kit.cursors import UnknownCursorError
from popagent_proto.chat.hooks import HookRunList, HookRunView

KEPT_RUNS: Final = 10_000
KEPT_DAYS: Final = 30
PRUNE_EVERY_S: Final = 600.0
BATCH: Final = 5_000
PAGE_BYTES: Final = 800_000
# Digits; a bigint has at most one more.
LONGEST_SEQ: Final = 18


@dataclass(frozen=True)
class AuditQueries:
    """Statements over the table `hook_runs` of one service."""

    add: Query[None]
    page: Query[HookRunView]
    more: Query[bool]
    drop_old: Query[None]
    recent: Query[str]
    drop_surplus: Query[None]


def audit_queries(column: str, table: str) -> AuditQueries:
    """Return the statements where `column` names the row of `table` to which a run belongs."""
    return AuditQueries(
        # What is gone has no audit any more; what was stored without an answer is not stored twice.
        add=Query(
            None,
            f"""
            insert into hook_runs (
                id, {column}, turn_id, trace_id, event, hook_id, hook_name, subject, decision, reason, status, input,
                output, duration_ms
            )
            select $1, o.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
            from {table} o
            where o.id = $2
            on conflict (id) do nothing
            """,  # noqa: S608 (constants of the services)
        ),
        # $3 is the last seq that was seen; $5 bounds the bytes of the page, of which one run comes in any case.
        page=Query(
            HookRunView,
            f"""
            select id, seq, turn_id, trace_id, event, hook_id, hook_name, subject, decision, reason, status, input,
                output, duration_ms, created_at as at
            from (
                select r.*, sum(octet_length(r.input::text) + octet_length(r.output) + 1024) over (order by r.seq)
                        as bytes,
                    row_number() over (order by r.seq) as place
                from (
                    select *
                    from hook_runs
                    where {column} = $1 and ($2::text is null or turn_id = $2) and seq > $3
                    order by seq
                    limit $4
                ) r
            ) page
            where bytes <= $5 or place = 1
            order by seq
            """,  # noqa: S608 (constants of the services)
        ),
        more=Query(
            bool,
            f"""
            select exists (
                select 1 from hook_runs where {column} = $1 and ($2::text is null or turn_id = $2) and seq > $3
            )
            """,  # noqa: S608 (constants of the services)
        ),
        drop_old=Query(
            None,
            f"""
            delete from hook_runs
            where seq in (
                select seq from hook_runs
                where created_at < now() - interval '{KEPT_DAYS} days'
                order by created_at
                limit $1
            )
            """,  # noqa: S608 (constants of this module)
        ),
        # Only what something was added to can have become too long.
        recent=Query(
            str,
            f"select distinct {column} from hook_runs where created_at > now() - interval '1 day'",  # noqa: S608
        ),
        drop_surplus=Query(
            None,
            f"""
            delete from hook_runs
            where {column} = $1 and seq <= (
                select seq from hook_runs where {column} = $1 order by seq desc offset $2 limit 1
            )
            """,  # noqa: S608 (constants of the services)
        ),
    )


async def audit_page(
    conn: Connection, queries: AuditQueries, about_id: str, *, turn_id: str | None, cursor: str | None, limit: int
) -> HookRunList:
    """Return one page of what hooks did in a session or a task, the oldest first.

    Raises:
        UnknownCursorError: The cursor is not one of ours.
    """
    page = await queries.page.all(conn, about_id, turn_id, _seq_of(cursor), limit, PAGE_BYTES)
    more = bool(page) and await queries.more.value(conn, about_id, turn_id, page[-1].seq)
    return HookRunList(items=page, next_cursor=str(page[-1].seq) if more else None)


def _seq_of(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= LONGEST_SEQ):
        raise UnknownCursorError
    return int(cursor)


class Retention:
    """The chore of one process."""

    def __init__(self, pool: Pool, queries: AuditQueries) -> None:
        self._pool = pool
        self._queries = queries

    async def prune(self) -> None:
        """Drop what is too old or too much, a batch a statement."""
        while True:
            async with self._pool.acquire() as conn:
                dropped = await self._queries.drop_old.run(conn, BATCH)
            if dropped < BATCH:
                break
        async with self._pool.acquire() as conn:
            for about_id in await self._queries.recent.all(conn):
                await self._queries.drop_surplus.run(conn, about_id, KEPT_RUNS)
