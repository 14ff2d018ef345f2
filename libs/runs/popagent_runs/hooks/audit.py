"""Writes down what hooks did, in the order in which they did it; a database that is away is waited for."""

from __future__ import annotations

from typing import Final

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_runs.hooks.rows import HookRun
from popagent_runs.late_rows import LateRows
from popagent_telemetry import metrics

DROPPED: Final = metrics.counter(
    "popagent_hook_runs_dropped_total", "Runs of hooks that are missing in the audit of their session"
)


class HookAudit(LateRows[HookRun]):
    """The audit of one process; `insert` stores a HookRun, its fields in their order."""

    def __init__(self, pool: Pool, insert: Query[None]) -> None:
        super().__init__(pool, insert, _values, what="runs of hooks", dropped=DROPPED)


def _values(run: HookRun) -> tuple[object, ...]:
    return tuple(run.model_dump().values())
