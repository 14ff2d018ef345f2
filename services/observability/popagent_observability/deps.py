"""What the handlers of this service are given."""

from __future__ import annotations

from dataclasses import dataclass

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_observability.settings import ObservabilitySettings
from popagent_observability.storing import Storing


@dataclass
class ObservabilityDeps:
    """Built once by the composition root."""

    settings: ObservabilitySettings
    pool: Pool
    bus: Bus
    storing: Storing
