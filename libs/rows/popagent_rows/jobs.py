"""Jobs: work that takes longer than a request, which answers 202 with an id that `GET /api/jobs/:id` follows."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from popagent_db.pool import Connection, Pool
from popagent_db.query import Query
from popagent_kit.errors import AppError
from popagent_kit.text import one_line
from popagent_proto.base import Event
from popagent_proto.common import JobView
from popagent_rows.leased import FENCE, End, Holder, Lease, LeasedRow, LeasedRows, LeaseLostError, Outcome, Requeue
from popagent_rows.outbox import Outbox
from popagent_rows.pruning import prune
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Worker
from popagent_telemetry.redaction import redact

log = logging.getLogger(__name__)

LEASE_S: Final = 30.0
BEAT_S: Final = 10.0
SLOTS: Final = 4
MAX_ATTEMPTS: Final = 5
BACKOFF_S: Final = 1.0
BACKOFF_MAX_S: Final = 60.0
KEPT: Final = timedelta(days=7)
PRUNE_PERIOD_S: Final = 3_600.0
NOTE_LENGTH: Final = 500
ERROR_LENGTH: Final = 1_000
# What is reported sooner after the last report is not stored; nobody can read it.
REPORT_EVERY_S: Final = 0.5
LONGEST_LIST: Final = 100


@dataclass(frozen=True, kw_only=True)
class JobRow(LeasedRow):
    """A job as its handler sees it."""

    kind: str
    input: dict[str, Any]
    max_attempts: int


@dataclass(frozen=True)
class StoredJob:
    """A job as its follower sees it."""

    id: str
    kind: str
    title: str
    about: str | None
    state: str
    progress: float
    note: str
    error: str | None
    result: dict[str, Any] | None
    version: int
    created_at: datetime
    updated_at: datetime

    def view(self) -> JobView:
        """Return what the wire shows."""
        return JobView.model_validate(self, from_attributes=True)


@dataclass(frozen=True)
class Attempt:
    """One attempt at a job, which has a lease."""

    id: str
    attempt: int


@dataclass(frozen=True)
class JobNews:
    """How those who follow jobs hear of them: the event of a job as it is now, of this version."""

    outbox: Outbox
    event: Callable[[JobView, int], Event]


JOBS: Final = LeasedRows("jobs", JobRow, lease_s=LEASE_S, beat_s=BEAT_S)

_SHOWN: Final = """
    id, kind, title, about, state, progress, note, error, output as result, version, created_at, updated_at
"""

# A job with the key of a stored one is that one; the no-op update makes the statement return it.
INSERT: Final = Query(
    StoredJob,
    f"""
    insert into jobs (id, kind, key, input, priority, max_attempts, run_at, title, about)
    values ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7), $8, $9)
    on conflict (kind, key) where key is not null do update set kind = excluded.kind
    returning {_SHOWN}
    """,  # noqa: S608 (columns)
)
GET: Final = Query(StoredJob, f"select {_SHOWN} from jobs where id = $1")  # noqa: S608 (columns)
LIST: Final = Query(
    StoredJob,
    f"select {_SHOWN} from jobs order by state in ('completed', 'failed'), created_at desc, id desc limit $1",  # noqa: S608
)
GET_INPUT: Final = Query(dict, "select input from jobs where id = $1")
RUNNING: Final = Query(Attempt, "select id, attempt from jobs where kind = $1 and state = 'running'")
FREE_KEY: Final = Query(
    None, "update jobs set key = null where kind = $1 and key = $2 and state in ('completed', 'failed')"
)
REPORT: Final = Query(
    StoredJob,
    f"""
    update jobs
    set progress = $4, note = $5, version = version + 1, updated_at = clock_timestamp()
    where {FENCE}
    returning {_SHOWN}
    """,  # noqa: S608 (columns)
)
COMPLETE: Final = Query(
    StoredJob,
    f"""
    update jobs
    set state = 'completed', owner = null, lease_until = null, output = $4, error = null, progress = 1, note = '',
        version = version + 1, updated_at = clock_timestamp()
    where {FENCE}
    returning {_SHOWN}
    """,  # noqa: S608 (columns)
)
FAIL: Final = Query(
    StoredJob,
    f"""
    update jobs
    set state = 'failed', owner = null, lease_until = null, error = $4, version = version + 1,
        updated_at = clock_timestamp()
    where {FENCE}
    returning {_SHOWN}
    """,  # noqa: S608 (columns)
)
NOTE_ERROR: Final = Query(
    None,
    f"update jobs set error = $4, version = version + 1, updated_at = clock_timestamp() where {FENCE}",  # noqa: S608
)
PRUNE: Final = Query(
    None,
    """
    delete from jobs
    where id in (
        select id from jobs
        where state in ('completed', 'failed') and updated_at < now() - $1::interval
        limit $2
    )
    """,
)

JobHandler = Callable[["Job"], Awaitable[dict[str, Any] | None]]
"""Does the work of one kind, and returns the output; called again from the start when an attempt did not end."""


class Job:
    """A running job: its input, and where it reports. `lease.check()` before every effect."""

    def __init__(self, lease: Lease[JobRow], jobs: Jobs) -> None:
        self.lease = lease
        self.id = lease.row.id
        self.input = lease.row.input
        self.attempt = lease.row.attempt
        self._jobs = jobs
        self._next_report = 0.0

    async def report(self, progress: float, note: str = "") -> None:
        """Store how far it is (0 to 1), through the fence, and tell; what comes too soon after the last is dropped.

        Raises:
            LeaseLostError: Another attempt has the job.
        """
        if time.monotonic() < self._next_report:
            return
        self._next_report = time.monotonic() + REPORT_EVERY_S
        await self._jobs.change(self.lease, REPORT, progress, one_line(redact(note), NOTE_LENGTH))


class Jobs:
    """The jobs of one service, ids `<service>_<uuid>`."""

    def __init__(
        self,
        service: str,
        pool: Pool,
        holder: Holder,
        *,
        rows: LeasedRows[JobRow] = JOBS,
        slots: int = SLOTS,
        news: JobNews | None = None,
    ) -> None:
        self._service = service
        self._pool = pool
        self._news = news
        self._handlers: dict[str, JobHandler] = {}
        self.worker: Worker[JobRow] = Worker(
            rows, pool, holder, handler=self._run, failed=self._failed, expired=self._expired, slots=slots
        )

    def handles(self, kind: str) -> Callable[[JobHandler], JobHandler]:
        """Register the handler of `kind`."""

        def register(handler: JobHandler) -> JobHandler:
            assert kind not in self._handlers, f"two handlers for {kind}"
            self._handlers[kind] = handler
            return handler

        return register

    def start(self, pulse: Pulse) -> None:
        """Begin to run jobs."""
        self.worker.start(pulse)
        pulse.every(PRUNE_PERIOD_S, "jobs prune", self.prune)

    async def stop(self, drain_s: float = 10.0) -> None:
        """End as Worker.stop does; what was interrupted runs again elsewhere."""
        await self.worker.stop(drain_s)

    def id_of(self, number: UUID) -> str:
        """Return the id that a job of this service with this number has."""
        return f"{self._service}_{number}"

    async def enqueue(
        self,
        connection: Connection,
        kind: str,
        input: dict[str, Any],  # noqa: A002 (the column's name)
        *,
        job_id: str | None = None,
        key: str | None = None,
        again: bool = False,
        title: str = "",
        about: str | None = None,
        priority: int = 0,
        max_attempts: int = MAX_ATTEMPTS,
        delay_s: float = 0.0,
    ) -> JobView:
        """Store a job in the caller's transaction and return it; call `worker.wake()` after the commit.

        With a `key`, a second job of the same kind and key is the first one; with `again`, only until that has ended.
        """
        if again and key is not None:
            await FREE_KEY.run(connection, kind, key)
        stored = await INSERT.one(
            connection, job_id or self.id_of(uuid4()), kind, key, input, priority, max_attempts, delay_s, title, about
        )
        if stored.version == 0:
            await self._tell(connection, stored)
        return stored.view()

    async def get(self, connection: Connection, job_id: str) -> JobView | None:
        """Return the job, or None."""
        found = await GET.first(connection, job_id)
        return None if found is None else found.view()

    async def input_of(self, connection: Connection, job_id: str) -> dict[str, Any]:
        """Return what it was stored with; raises LookupError for an unknown id."""
        return await GET_INPUT.one(connection, job_id)

    async def newest(self, connection: Connection) -> list[JobView]:
        """Return up to 100: those that are not over, then those that are, the newest first."""
        return [stored.view() for stored in await LIST.all(connection, LONGEST_LIST)]

    async def running(self, connection: Connection, kind: str) -> list[Attempt]:
        """Return the attempts that are under way, in any process, or were when their process was lost."""
        return await RUNNING.all(connection, kind)

    async def prune(self, kept: timedelta = KEPT) -> int:
        """Delete jobs that ended longer than `kept` ago, and return how many."""
        return await prune(self._pool, PRUNE, kept)

    async def change(self, lease: Lease[JobRow], query: Query[StoredJob], *args: object) -> None:
        """Run a fenced statement that changes what followers see, and tell them; raises LeaseLostError."""
        lease.check()
        async with self._transaction() as connection:
            await self._change(connection, lease.row, query, *args)

    async def _change(self, connection: Connection, row: JobRow, query: Query[StoredJob], *args: object) -> None:
        stored = await query.first(connection, row.id, row.attempt, row.owner, *args)
        if stored is None:
            raise LeaseLostError(f"jobs {row.id}: attempt {row.attempt} was taken over")
        await self._tell(connection, stored)

    async def _tell(self, connection: Connection, stored: StoredJob) -> None:
        if self._news is not None:
            await self._news.outbox.add(connection, self._news.event(stored.view(), stored.version))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with (self._pool if self._news is None else self._news.outbox).transaction() as connection:
            yield connection

    async def _run(self, lease: Lease[JobRow]) -> Outcome:
        try:
            # An instance of another version may know a kind that this one does not: that is tried again too.
            output = await self._handlers[lease.row.kind](Job(lease, self))
        except LeaseLostError:
            raise
        except Exception as error:
            log.exception("job failed", extra={"job": lease.row.id, "kind": lease.row.kind})
            outcome = after_failure(lease.row)
            if isinstance(outcome, End) or (isinstance(error, AppError) and not error.retryable):
                await self._end(lease, FAIL, reason_of(error))
                return None
            async with self._pool.acquire() as connection:
                await lease.run(connection, NOTE_ERROR, reason_of(error))
            return outcome
        await self._end(lease, COMPLETE, output or {})
        return None

    async def _end(self, lease: Lease[JobRow], query: Query[StoredJob], value: object) -> None:
        lease.check()
        lease.over()
        await self.change(lease, query, value)

    def _failed(self, lease: Lease[JobRow], error: Exception) -> Outcome:
        # Only what could not be stored comes here.
        log.warning("a job's end was not stored", extra={"job": lease.row.id, "reason": str(error)})
        return after_failure(lease.row)

    async def _expired(self, connection: Connection, row: JobRow) -> Outcome:
        outcome = after_failure(row)
        if not isinstance(outcome, End):
            return outcome
        await self._change(connection, row, FAIL, "its process was lost in every attempt")
        return None


def reason_of(error: Exception) -> str:
    """Return what a reader may see of `error`."""
    text = error.message if isinstance(error, AppError) else f"{type(error).__name__}: {error}"
    return one_line(redact(text), ERROR_LENGTH)


def after_failure(row: JobRow) -> End | Requeue:
    """Return what follows an attempt that failed: another after a growing pause, or the end after the last."""
    if row.attempt >= row.max_attempts:
        return End("failed")
    return Requeue(min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** (row.attempt - 1)))
