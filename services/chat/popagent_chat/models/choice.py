"""What decides where a run's answers come from: the runtime settings and the saved connection."""

from __future__ import annotations

from dataclasses import dataclass

from popagent_chat.models import store
from popagent_chat.models.store import NOTHING_STORED, StoredConnection
from popagent_chat.runtime_settings.store import stored_settings
from popagent_db.pool import Connection
from popagent_proto.chat.settings import AgentRuntimeView


@dataclass(frozen=True)
class ModelChoice:
    """As it was at one moment."""

    runtime: AgentRuntimeView
    connection: StoredConnection = NOTHING_STORED


async def model_choice(conn: Connection) -> ModelChoice:
    """Read it as it is stored.

    Raises:
        SettingsMissingError: There are no runtime settings.
    """
    return ModelChoice(await stored_settings(conn), await store.GET.first(conn) or NOTHING_STORED)
