"""Which models can answer."""

from __future__ import annotations

from fastapi import APIRouter

from popagent_gateway.asking import Bus
from popagent_gateway.bodies import JsonRoute
from popagent_proto.chat.models import ListModels, ModelsView

router = APIRouter(prefix="/api/models", tags=["models"], route_class=JsonRoute)


@router.get("")
async def list_models(bus: Bus) -> ModelsView:
    """List the models of the configured endpoint, with their context windows."""
    return await bus.ask(ListModels())
