"""What the handlers of this service are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_rows.outbox import Outbox


@dataclass(frozen=True)
class SchedulerDeps:
    """Built once by the composition root; `wake` makes the planner look at once."""

    pool: Pool
    outbox: Outbox
    bus: Bus
    zone: ZoneInfo
    wake: Callable[[], None]
