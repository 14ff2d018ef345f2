"""What the handlers of this service are given."""

from __future__ import annotations

from dataclasses import dataclass

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_rows.jobs import Jobs
from popagent_rows.outbox import Outbox


@dataclass(frozen=True)
class DocsDeps:
    """Built once by the composition root."""

    pool: Pool
    outbox: Outbox
    bus: Bus
    jobs: Jobs
