"""What decides where a run's answers come from: the runtime settings and the saved connection."""

from __future__ import annotations

from dataclasses import dataclass

from popagent_chat.models.store import NOTHING_STORED, StoredConnection
from popagent_proto.chat.settings import AgentRuntimeView


@dataclass(frozen=True)
class ModelChoice:
    """As it was at one moment."""

    runtime: AgentRuntimeView
    connection: StoredConnection = NOTHING_STORED
