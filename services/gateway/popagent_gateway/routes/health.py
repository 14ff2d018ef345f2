"""How the whole suite is."""

from __future__ import annotations

from fastapi import APIRouter, Response

from popagent_gateway.asking import Suite
from popagent_gateway.bodies import JsonRoute
from popagent_proto.http import SuiteHealthView

router = APIRouter(prefix="/api/health", tags=["health"], route_class=JsonRoute)


@router.get("", responses={503: {"model": SuiteHealthView, "description": "A database does not answer."}})
async def get_health(suite: Suite, response: Response) -> SuiteHealthView:
    """Ask every service; 200 only while the application's and the observability PostgreSQL answer."""
    view = await suite.ask_all()
    if not view.ready:
        response.status_code = 503
        response.headers["retry-after"] = "1"
    return view
