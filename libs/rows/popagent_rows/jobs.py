"""Jobs: work that takes longer than a request, which answers 202 with an id that `GET /api/jobs/:id` follows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from popagent_db.pool import Connection, Pool
from popagent_db.query import Query
from popagent_kit.errors import AppError
from popagent_kit.text import one_line
from popagent_proto.common import JobView
from popagent_rows.leased import End, Holder, Lease, LeasedRow, LeasedRows, LeaseLostError, Outcome, Requeue
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
    state: str
    progress: float
    note: str
    error: str | None
    created_at: datetime
    updated_at: datetime


JOBS: Final = LeasedRows("jobs", JobRow, lease_s=LEASE_S, beat_s=BEAT_S)

# A job with the key of a stored one is that one; the no-op update makes the statement return it.
INSERT: Final = Query(
    str,
    """
    insert into jobs (id, kind, key, input, priority, max_attempts, run_at)
    values ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7))
    on conflict (kind, key) where key is not null do update set kind = excluded.kind
    returning id
    """,
)
GET: Final = Query(
    StoredJob,
    """
    select id, kind, state, progress, note, error, created_at, updated_at
    from jobs
    where id = $1
    """,
)
GET_OUTPUT: Final = Query(dict, "select coalesce(output, '{}') as output from jobs where id = $1")
REPORT: Final = Query(
    None,
    """
    update jobs
    set progress = $4, note = $5, updated_at = clock_timestamp()
    where id = $1 and attempt = $2 and owner = $3 and state = 'running'
    """,
)
COMPLETE: Final = Query(
    None,
    """
    update jobs
    set state = 'completed', owner = null, lease_until = null, output = $4, error = null, progress = 1,
        updated_at = clock_timestamp()
    where id = $1 and attempt = $2 and owner = $3 and state = 'running'
    """,
)
NOTE_ERROR: Final = Query(
    None,
    """
    update jobs
    set error = $4, updated_at = clock_timestamp()
    where id = $1 and attempt = $2 and owner = $3 and state = 'running'
    """,
)
PRUNE: Final = Query(
    None,
    """
    delete from jobs
    where id in (
        select id from jobs
        where state in ('completed', 'failed') and updated_at < clock_timestamp() - $1::interval
        limit $2
    )
    """,
)

JobHandler = Callable[["Job"], Awaitable[dict[str, Any] | None]]
"""Does the work of one kind, and returns the output; called again from the start when an attempt did not end."""


class Job:
    """A running job: its input, and where it reports. `lease.check()` before every effect."""

    def __init__(self, lease: Lease[JobRow], pool: Pool) -> None:
        self.lease = lease
        self.id = lease.row.id
        self.input = lease.row.input
        self.attempt = lease.row.attempt
        self._pool = pool

    async def report(self, progress: float, note: str = "") -> None:
        """Store how far it is (0 to 1), through the fence; raises LeaseLostError."""
        async with self._pool.acquire() as connection:
            await self.lease.run(connection, REPORT, progress, one_line(note, NOTE_LENGTH))


class Jobs:
    """The jobs of one service, ids `<service>_<uuid>`."""

    def __init__(
        self, service: str, pool: Pool, holder: Holder, *, rows: LeasedRows[JobRow] = JOBS, slots: int = SLOTS
    ) -> None:
        self._service = service
        self._pool = pool
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

    async def enqueue(
        self,
        connection: Connection,
        kind: str,
        input: dict[str, Any],  # noqa: A002 (the column's name)
        *,
        key: str | None = None,
        priority: int = 0,
        max_attempts: int = MAX_ATTEMPTS,
        delay_s: float = 0.0,
    ) -> str:
        """Store a job in the caller's transaction and return its id; call `worker.wake()` after the commit.

        With a `key`, a second job of the same kind and key is the first one.
        """
        job_id = f"{self._service}_{uuid4()}"
        return await INSERT.one(connection, job_id, kind, key, input, priority, max_attempts, delay_s)

    async def get(self, connection: Connection, job_id: str) -> JobView | None:
        """Return the job, or None."""
        found = await GET.first(connection, job_id)
        return None if found is None else JobView.model_validate(found, from_attributes=True)

    async def output(self, connection: Connection, job_id: str) -> dict[str, Any]:
        """Return what the handler returned; empty before that. Raises LookupError for an unknown id."""
        return await GET_OUTPUT.one(connection, job_id)

    async def prune(self, kept: timedelta = KEPT) -> int:
        """Delete jobs that ended longer than `kept` ago, and return how many."""
        return await prune(self._pool, PRUNE, kept)

    async def _run(self, lease: Lease[JobRow]) -> Outcome:
        try:
            # An instance of another version may know a kind that this one does not: that is tried again too.
            output = await self._handlers[lease.row.kind](Job(lease, self._pool))
        except LeaseLostError:
            raise
        except Exception as error:
            log.exception("job failed", extra={"job": lease.row.id, "kind": lease.row.kind})
            async with self._pool.acquire() as connection:
                await lease.run(connection, NOTE_ERROR, reason_of(error))
            final = isinstance(error, AppError) and not error.retryable
            return End("failed") if final else after_failure(lease.row)
        async with self._pool.acquire() as connection:
            lease.over()
            await lease.run(connection, COMPLETE, output or {})
        return None

    def _failed(self, lease: Lease[JobRow], error: Exception) -> Outcome:
        # Only what could not be stored comes here.
        log.warning("a job's end was not stored", extra={"job": lease.row.id, "reason": str(error)})
        return after_failure(lease.row)

    async def _expired(self, connection: Connection, row: JobRow) -> Outcome:
        outcome = after_failure(row)
        if isinstance(outcome, End):
            await self.worker.rows.fenced(connection, row, NOTE_ERROR, "its process was lost in every attempt")
        return outcome


def reason_of(error: Exception) -> str:
    """Return what a reader may see of `error`."""
    text = error.message if isinstance(error, AppError) else f"{type(error).__name__}: {error}"
    return redact(one_line(text, ERROR_LENGTH))


def after_failure(row: JobRow) -> End | Requeue:
    """Return what follows an attempt that failed: another after a growing pause, or the end after the last."""
    if row.attempt >= row.max_attempts:
        return End("failed")
    return Requeue(min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** (row.attempt - 1)))
