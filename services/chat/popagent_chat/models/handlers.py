"""Answer which models there are."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.models.choice import model_choice
from popagent_proto.chat.models import ListModels, ModelsView

handlers = Handlers[ChatDeps]()


@handlers.answers(ListModels)
async def list_models(deps: ChatDeps, query: ListModels) -> ModelsView:
    """Return the catalogue of the endpoint that the settings choose."""
    async with deps.pool.acquire() as conn:
        choice = await model_choice(conn)
    return await deps.models.view(choice)
