"""Tasks that ended well long ago are deleted; what waits for a person, and what repairs such a task, never is."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_proto.task_runner.tasks import TaskDeleted
from popagent_rows.outbox import Outbox
from popagent_rows.pruning import prune
from popagent_task_runner.tasks.store import Version

log = logging.getLogger(__name__)

PRUNE_EVERY_S: Final = 3_600.0
# With their transcripts, of a megabyte each at most.
TASKS_AT_ONCE: Final = 50

DELETE_OLD: Final = Query(
    Version,
    """
    with old as (
        select id from tasks t
        where state in ('completed', 'cancelled') and ended_at < now() - $1::interval
            and coalesce((select p.state from tasks p where p.id = t.remediates), 'completed')
                in ('completed', 'cancelled')
        order by ended_at
        limit $2
        for update skip locked
    )
    delete from tasks t using old where t.id = old.id
    returning t.id, t.version
    """,
)
DELETE_OLD_USAGE: Final = Query(
    None,
    """
    delete from model_usage
    where id in (select id from model_usage where created_at < now() - $1::interval order by created_at limit $2)
    """,
)


class Retention:
    """Deletes, a batch at a time, what ended longer ago than `kept_days`; 0 keeps everything."""

    def __init__(self, pool: Pool, outbox: Outbox, kept_days: int, *, at_once: int = TASKS_AT_ONCE) -> None:
        self._pool = pool
        self._outbox = outbox
        self._kept = timedelta(days=kept_days)
        self._at_once = at_once

    async def prune(self) -> int:
        """Delete old tasks, each told of as if a person had done it, and old model usage; returns how many tasks."""
        if not self._kept:
            return 0
        total = 0
        while (gone := await self._batch()) > 0:
            total += gone
            if gone < self._at_once:
                break
        await prune(self._pool, DELETE_OLD_USAGE, self._kept)
        if total:
            log.info("old tasks were deleted", extra={"tasks": total})
        return total

    async def _batch(self) -> int:
        async with self._outbox.transaction() as conn:
            gone = await DELETE_OLD.all(conn, self._kept, self._at_once)
            events = [TaskDeleted(aggregate_id=task.id, version=task.version + 1, task_id=task.id) for task in gone]
            if events:
                await self._outbox.add(conn, *events)
        return len(gone)
