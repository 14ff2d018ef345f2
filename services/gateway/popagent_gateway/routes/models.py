"""Which models can answer, and the connection to their server."""

from __future__ import annotations

from fastapi import APIRouter, Request

from popagent_gateway.asking import Bus, CommandId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.sealed import sealed_field
from popagent_proto.chat.models import (
    AskModelConnection,
    ConnectionTestView,
    DetectedServers,
    DetectModelServers,
    DropModelConnection,
    GetModelConnection,
    ListModels,
    ModelConnectionView,
    ModelsView,
    PutModelConnection,
)
from popagent_proto.chat.secrets import MODEL_KEY_PURPOSE
from popagent_proto.http import ModelConnectionBody, ModelConnectionTestBody

router = APIRouter(prefix="/api/models", tags=["models"], route_class=JsonRoute)


@router.get("")
async def list_models(bus: Bus) -> ModelsView:
    """List the models of the configured endpoint, with their context windows."""
    return await bus.ask(ListModels())


@router.get("/connection")
async def get_connection(bus: Bus) -> ModelConnectionView:
    """Return where answers come from; the key is never told."""
    return await bus.ask(GetModelConnection())


@router.put("/connection")
async def put_connection(bus: Bus, body: ModelConnectionBody, command_id: CommandId) -> ModelConnectionView:
    """Save a model server for the next run; its key is sealed here and opened by its keeper alone."""
    fields = await sealed_field(bus, body, "key", MODEL_KEY_PURPOSE)
    return await bus.ask(PutModelConnection(command_id=command_id, revision=body.revision, url=body.url, **fields))


@router.delete("/connection")
async def drop_connection(bus: Bus, command_id: CommandId) -> ModelConnectionView:
    """Forget the saved server and its key."""
    return await bus.ask(DropModelConnection(command_id=command_id))


@router.post("/connection/test")
async def test_connection(bus: Bus, body: ModelConnectionTestBody) -> ConnectionTestView:
    """Ask a server for its models and a few words, for up to 14 s; nothing is stored."""
    fields = await sealed_field(bus, body, "key", MODEL_KEY_PURPOSE)
    if body.model is not None:
        fields["model"] = body.model
    return await bus.ask(AskModelConnection(url=body.url, **fields))


@router.get("/detect")
async def detect_servers(bus: Bus, request: Request) -> DetectedServers:
    """Look for model servers at the well-known ports of this machine, now; none of them is used by that."""
    address = request.scope.get("server")
    ours = {*request.app.state.own_ports, *([address[1]] if address and address[1] else [])}
    return await bus.ask(DetectModelServers(own_ports=sorted(ours)))
