"""A table of leased rows with effects that only a holder may write; run as a module it is a worker process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from typing import Final

from popagent_db.pool import Connection, Pool, open_pool
from popagent_db.query import Query
from popagent_rows.leased import End, Holder, Lease, LeasedRow, LeasedRows, Outcome, Requeue, Verdict
from popagent_rows.pulse import Pulse
from popagent_rows.worker import Worker

LEASE_S: Final = 1.0
BEAT_S: Final = 0.3
MAX_ATTEMPTS: Final = 5

CREATE: Final = """
create table work (
    id text primary key, state text not null default 'queued', attempt integer not null default 0,
    owner uuid, boot_id uuid, lease_until timestamptz, run_at timestamptz not null default clock_timestamp(),
    priority integer not null default 0, stop_requested boolean not null default false, name text not null default ''
) with (fillfactor = 70);
create index work_queued on work (priority desc, run_at, id) where state = 'queued';
create index work_running on work (lease_until) where state = 'running';
create table starts (id text, attempt integer, owner uuid, at timestamptz not null default clock_timestamp());
create table effects (id text, attempt integer, owner uuid, at timestamptz not null default clock_timestamp());
"""


@dataclass(frozen=True, kw_only=True)
class WorkRow(LeasedRow):
    """One row of work; its `name` says what should happen to it."""

    name: str


WORK: Final = LeasedRows("work", WorkRow, lease_s=LEASE_S, beat_s=BEAT_S)
ENQUEUE: Final = Query(None, "insert into work (id, name) values ($1, $2)")
REQUEST_STOP: Final = Query(
    None, "update work set stop_requested = true where id = $1 and state in ('queued', 'running')"
)
NOTE_START: Final = Query(None, "insert into starts (id, attempt, owner) values ($1, $2, $3)")
NOTE_EFFECT: Final = Query(None, "insert into effects (id, attempt, owner) values ($1, $2, $3)")


async def requeue_expired(_: Connection, row: WorkRow) -> Verdict:
    """Try again until the last attempt."""
    return End("failed") if row.attempt >= MAX_ATTEMPTS else Requeue()


def fail(_: Lease[WorkRow], _error: Exception) -> Outcome:
    """End what raised."""
    return End("failed")


async def write_effect(pool: Pool, lease: Lease[WorkRow]) -> None:
    """Write the effect and the end of the row in one fenced transaction."""
    row = lease.row
    async with pool.transaction() as connection:
        await lease.fence(connection)
        await NOTE_EFFECT.run(connection, row.id, row.attempt, row.owner)
        lease.over()
        await lease.rows.settle(connection, row, End("completed"))


async def serve(dsn: str, work_s: float) -> None:
    """Work on rows for `work_s` each; a row named `die` kills this process in its first attempt."""
    pool = await open_pool(dsn, application_name="worker", max_size=4)

    async def handle(lease: Lease[WorkRow]) -> Outcome:
        row = lease.row
        async with pool.acquire() as connection:
            await NOTE_START.run(connection, row.id, row.attempt, row.owner)
        if row.name == "die" and row.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(work_s)
        await write_effect(pool, lease)
        return None

    pulse = Pulse(pool, period_s=0.2)
    worker = Worker(WORK, pool, Holder.of_this_process(), handler=handle, failed=fail, expired=requeue_expired, slots=4)
    pulse.start()
    worker.start(pulse)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2])))
