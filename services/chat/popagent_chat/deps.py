"""What the handlers of this service are given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_rows.outbox import Outbox

if TYPE_CHECKING:
    from popagent_chat.models.gateway import ModelGateway
    from popagent_chat.turns.worker import TurnWorker


@dataclass
class ChatDeps:
    """Built once by the composition root."""

    pool: Pool
    outbox: Outbox
    bus: Bus
    workspace_root: Path
    models: ModelGateway
    turns: TurnWorker
