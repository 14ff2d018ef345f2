"""The leased row: work that one process holds for a while, and that every write of it proves to hold still.

All times are the database's; a holder measures its own deadline on its monotonic clock, and that ends earlier.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar
from uuid import UUID, uuid4

from popagent_db.pool import Connection
from popagent_db.query import Query
from popagent_kit.errors import AppError

TABLE_NAME: Final = re.compile(r"\A[a-z][a-z0-9_]{0,62}\Z")
# The holder gives up at this share of its lease, counted from before it asked: time to end work before a takeover.
LOCAL_SHARE: Final = 0.8


class LeaseLostError(AppError):
    """This process does not hold the row any more; whatever it did since is not written."""

    code = "lease_lost"
    http_status = 409


@dataclass(frozen=True)
class Holder:
    """Who holds: `owner` is this process start, never a host name; `boot_id` the start of the whole suite."""

    owner: UUID
    boot_id: UUID

    @classmethod
    def of_this_process(cls, boot_id: UUID | None = None) -> Holder:
        """Return a holder that no other process start has; without a `boot_id` the process is a suite of its own."""
        owner = uuid4()
        return cls(owner, boot_id or owner)


@dataclass(frozen=True, kw_only=True)
class LeasedRow:
    """What every leased row has; a table's own columns are the fields of a subclass."""

    id: str
    attempt: int
    owner: UUID
    boot_id: UUID
    stop_requested: bool


Row = TypeVar("Row", bound=LeasedRow)


@dataclass(frozen=True)
class Beaten:
    """One row's answer to a heartbeat.

    Not `beaten` and still `ours`: its row was locked, and the next beat will do, or it was let go.
    """

    id: str
    attempt: int
    beaten: bool
    ours: bool
    stop_requested: bool


@dataclass(frozen=True)
class End:
    """The work is over: `state` is final."""

    state: str


@dataclass(frozen=True)
class Requeue:
    """The work waits again, for `delay_s` at least."""

    delay_s: float = 0.0


@dataclass(frozen=True)
class Take:
    """The sweeper's process takes the row under a new lease, to end it with more than one statement."""


Outcome = End | Requeue | None
Verdict = End | Requeue | Take | None

# A fenced statement names the row by these three arguments, before its own from $4 on.
FENCE: Final = "id = $1 and attempt = $2 and owner = $3 and state = 'running'"


class LeasedRows(Generic[Row]):
    """The statements of one table of leased rows.

    The table has: id text, state text ('queued', 'running', or a final state), attempt integer, owner uuid,
    boot_id uuid, lease_until timestamptz, run_at timestamptz, priority integer, stop_requested boolean; an index on
    (priority desc, run_at, id) where state = 'queued', and one on (lease_until) where state = 'running'.
    """

    def __init__(self, table: str, row: type[Row], *, lease_s: float, beat_s: float, claim: str | None = None) -> None:
        """Describe `table`; `claim` replaces the statement that selects and locks the ids of due rows, $1 its limit."""
        if TABLE_NAME.match(table) is None:
            raise ValueError(f"not a table: {table!r}")
        if not 0 < beat_s * 2 <= lease_s * LOCAL_SHARE:
            raise ValueError(f"{table}: two beats of {beat_s} s do not fit into a lease of {lease_s} s")
        self.table = table
        self.row = row
        self.lease_s = lease_s
        self.beat_s = beat_s
        columns = ", ".join(f"t.{field.name}" for field in dataclasses.fields(row))
        due = claim or (
            f"select id from {table} where state = 'queued' and run_at <= now() "  # noqa: S608 (checked above)
            "order by priority desc, run_at, id limit $1 for update skip locked"
        )
        lease = "clock_timestamp() + make_interval(secs => $4)"
        self.claim_due = Query(
            row,
            f"""
            with due as materialized ({due})
            update {table} t
            set state = 'running', attempt = t.attempt + 1, owner = $2, boot_id = $3, lease_until = {lease}
            from due
            where t.id = due.id
            returning {columns}
            """,  # noqa: S608 (the table's name is checked above, columns are fields)
        )
        self.beat_held = Query(
            Beaten,
            f"""
            with held as (
                select id, attempt from unnest($1::text[], $2::integer[]) as given (id, attempt)
            ), free as (
                select t.id, t.attempt
                from {table} t
                join held on held.id = t.id and held.attempt = t.attempt
                where t.owner = $3 and t.state = 'running' and t.lease_until > '-infinity'
                for update of t skip locked
            ), beaten as (
                update {table} t set lease_until = {lease}
                from free
                where t.id = free.id
                returning t.id, t.attempt, t.stop_requested
            )
            select held.id, held.attempt, beaten.id is not null as beaten,
                   t.id is not null as ours,
                   coalesce(beaten.stop_requested, t.stop_requested, false) as stop_requested
            from held
            left join beaten on beaten.id = held.id and beaten.attempt = held.attempt
            left join {table} t
                on t.id = held.id and t.attempt = held.attempt and t.owner = $3 and t.state = 'running'
            """,  # noqa: S608
        )
        self.lock_held = Query(str, f"select id from {table} where {FENCE} for no key update")  # noqa: S608
        self.end_held = Query(
            None,
            f"update {table} set state = $4, owner = null, lease_until = null where {FENCE}",  # noqa: S608
        )
        self.requeue_held = Query(
            None,
            f"""
            update {table}
            set state = 'queued', owner = null, lease_until = null,
                run_at = clock_timestamp() + make_interval(secs => $4)
            where {FENCE}
            """,  # noqa: S608
        )
        # Not "now": a beat that is on its way must not take it back, while it may revive a lease that only ran out,
        # as all do when the machine slept.
        self.let_go = Query(None, f"update {table} set lease_until = '-infinity' where {FENCE}")  # noqa: S608
        self.expired = Query(
            row,
            f"""
            select {columns}
            from {table} t
            where t.state = 'running' and t.lease_until <= now()
            order by t.lease_until
            limit $1
            for update skip locked
            """,  # noqa: S608
        )
        self.take_over = Query(
            row,
            f"""
            update {table} t
            set attempt = t.attempt + 1, owner = $4, boot_id = $5,
                lease_until = clock_timestamp() + make_interval(secs => $6)
            where t.id = $1 and t.attempt = $2 and t.owner = $3 and t.state = 'running'
            returning {columns}
            """,  # noqa: S608
        )
        self.probe_due = f"exists (select 1 from {table} where state = 'queued' and run_at <= now())"  # noqa: S608
        self.probe_expired = f"exists (select 1 from {table} where state = 'running' and lease_until <= now())"  # noqa: S608

    async def claim(self, connection: Connection, holder: Holder, limit: int) -> list[Row]:
        """Take up to `limit` due rows, those with the highest priority and the longest wait."""
        return await self.claim_due.all(connection, limit, holder.owner, holder.boot_id, self.lease_s)

    async def beat(self, connection: Connection, holder: Holder, rows: Sequence[LeasedRow]) -> list[Beaten]:
        """Prolong what is still ours and was not let go, and say of each row whether it is ours."""
        ids, attempts = [row.id for row in rows], [row.attempt for row in rows]
        return await self.beat_held.all(
            connection, ids, attempts, holder.owner, self.lease_s, timeout_s=max(self.beat_s, 0.2)
        )

    async def fence(self, connection: Connection, row: LeasedRow) -> None:
        """Lock the row until the end of the transaction, so that everything written in it is written by its holder.

        Raises:
            LeaseLostError: Another attempt has it, or it has ended.
        """
        if await self.lock_held.first(connection, row.id, row.attempt, row.owner) is None:
            raise LeaseLostError(f"{self.table} {row.id}: attempt {row.attempt} was taken over")

    async def fenced(self, connection: Connection, row: LeasedRow, query: Query[None], *args: object) -> None:
        """Run one statement that ends in `where {FENCE}`; its own arguments begin with $4.

        Raises:
            LeaseLostError: It touched no row.
        """
        if await query.run(connection, row.id, row.attempt, row.owner, *args) == 0:
            raise LeaseLostError(f"{self.table} {row.id}: attempt {row.attempt} was taken over")

    async def settle(self, connection: Connection, row: LeasedRow, outcome: End | Requeue) -> None:
        """Write how the attempt ended; raises LeaseLostError as `fenced` does."""
        if isinstance(outcome, End):
            await self.fenced(connection, row, self.end_held, outcome.state)
        else:
            await self.fenced(connection, row, self.requeue_held, outcome.delay_s)

    async def take(self, connection: Connection, row: LeasedRow, holder: Holder) -> Row:
        """Give an expired row, locked by the caller, a new attempt of `holder`."""
        return await self.take_over.one(
            connection, row.id, row.attempt, row.owner, holder.owner, holder.boot_id, self.lease_s
        )


class Lease(Generic[Row]):
    """A row that this process holds: what its work checks before every effect and writes through."""

    def __init__(self, rows: LeasedRows[Row], row: Row, asked_at: float) -> None:
        """Hold `row`, for which the database was asked at `asked_at` (monotonic seconds)."""
        self.rows = rows
        self.row = row
        self.deadline = asked_at + rows.lease_s * LOCAL_SHARE
        self.stop = asyncio.Event()
        self.ending: Literal["lost", "interrupted", "over"] | None = None
        if row.stop_requested:
            self.stop.set()

    @property
    def held(self) -> bool:
        """True while nobody else can hold the row."""
        return self.ending != "lost" and time.monotonic() < self.deadline

    def check(self) -> None:
        """Raise LeaseLostError from the local deadline on; costs nothing, call it before every effect."""
        if not self.held:
            raise LeaseLostError(f"{self.rows.table} {self.row.id}: the lease of attempt {self.row.attempt} ended")

    def prolong(self, asked_at: float) -> None:
        """Count the lease from `asked_at`, when a beat that succeeded was sent."""
        self.deadline = max(self.deadline, asked_at + self.rows.lease_s * LOCAL_SHARE)

    def over(self) -> None:
        """Say, before committing it, that the work ends the row itself: a beat that does not find it is no loss."""
        self.ending = "over"

    async def fence(self, connection: Connection) -> None:
        """Make the caller's transaction the holder's; raises LeaseLostError."""
        self.check()
        await self.rows.fence(connection, self.row)

    async def run(self, connection: Connection, query: Query[None], *args: object) -> None:
        """Run one fenced statement, see LeasedRows.fenced; raises LeaseLostError."""
        self.check()
        await self.rows.fenced(connection, self.row, query, *args)
