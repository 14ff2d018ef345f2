"""Answer which models there are."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.models import store
from popagent_chat.models.choice import ModelChoice
from popagent_chat.models.store import NOTHING_STORED
from popagent_chat.runtime_settings.handlers import stored_settings
from popagent_db.pool import Connection
from popagent_proto.chat.models import ListModels, ModelsView

handlers = Handlers[ChatDeps]()


@handlers.answers(ListModels)
async def list_models(deps: ChatDeps, query: ListModels) -> ModelsView:
    """Return the catalogue of the endpoint that the settings choose."""
    async with deps.pool.acquire() as conn:
        choice = await model_choice(conn)
    return await deps.models.view(choice)


async def model_choice(conn: Connection) -> ModelChoice:
    """Read what decides where answers come from.

    Raises:
        SettingsMissingError: There are no runtime settings.
    """
    return ModelChoice(await stored_settings(conn), await store.GET.first(conn) or NOTHING_STORED)
