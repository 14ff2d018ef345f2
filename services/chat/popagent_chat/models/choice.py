"""What decides where answers come from, as it is stored."""

from __future__ import annotations

from popagent_chat.models import store
from popagent_chat.runtime_settings.store import stored_settings
from popagent_db.pool import Connection
from popagent_runs.models.choice import NOTHING_STORED, ModelChoice


async def model_choice(conn: Connection) -> ModelChoice:
    """Read it as it is stored.

    Raises:
        SettingsMissingError: There are no runtime settings.
    """
    return ModelChoice(await stored_settings(conn), await store.GET.first(conn) or NOTHING_STORED)
