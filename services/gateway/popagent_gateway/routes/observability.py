"""Traces, and how the store of traces is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from popagent_gateway.asking import Bus
from popagent_gateway.bodies import JsonRoute
from popagent_proto.observability import GetStoreHealth, GetTrace, ListTraces, StoreHealthView, TraceList, TraceView

router = APIRouter(prefix="/api/observability", tags=["observability"], route_class=JsonRoute)
TraceId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


@router.get("/traces")
async def list_traces(bus: Bus, query: Annotated[ListTraces, Query()]) -> TraceList:
    """List traces, newest first."""
    return await bus.ask(query)


@router.get("/traces/{id}")
async def get_trace(bus: Bus, id: TraceId) -> TraceView:  # noqa: A002
    """Return one trace with its spans and log records; a running one too."""
    return await bus.ask(GetTrace(trace_id=id))


@router.get("/health")
async def get_store_health(bus: Bus) -> StoreHealthView:
    """Tell how much the store holds and how far it is behind."""
    return await bus.ask(GetStoreHealth())
