"""Who belongs to the company."""

from __future__ import annotations

from fastapi import APIRouter

from popagent_gateway.asking import Bus
from popagent_gateway.bodies import JsonRoute
from popagent_proto.chat.agents import CompanyView, GetCompany

router = APIRouter(prefix="/api/company", tags=["company"], route_class=JsonRoute)


@router.get("")
async def get_company(bus: Bus) -> CompanyView:
    """Return the roster by department."""
    return await bus.ask(GetCompany())
