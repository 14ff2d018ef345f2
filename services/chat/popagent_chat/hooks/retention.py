"""The audit of hooks in sessions is kept as small as every other."""

from __future__ import annotations

from popagent_chat.hooks import store
from popagent_db.pool import Pool
from popagent_runs.hooks import audited
from popagent_runs.hooks.audited import PRUNE_EVERY_S

__all__ = ["PRUNE_EVERY_S", "Retention"]


class Retention(audited.Retention):
    """The chore of one process."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, store.AUDIT)
