"""The FastAPI application: every route, every error, and the description of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from popagent_gateway.bodies import JsonRoute
from popagent_gateway.errors import on_app_error, on_defect, on_http_exception, on_validation_error
from popagent_gateway.openapi import describe
from popagent_gateway.routes import (
    agents,
    channels,
    chat,
    company,
    docs,
    events,
    health,
    hooks,
    jobs,
    models,
    observability,
    schedules,
    sessions,
    settings,
    skills,
    tasks,
    workspaces,
)
from popagent_gateway.routes.pages import BUILT, page_routes
from popagent_kit import json
from popagent_kit.errors import AppError

ROUTERS: Final = (
    chat.router,
    sessions.router,
    workspaces.router,
    jobs.router,
    agents.router,
    skills.router,
    company.router,
    hooks.router,
    tasks.router,
    schedules.router,
    channels.router,
    docs.router,
    docs.search,
    models.router,
    settings.router,
    events.router,
    health.router,
    observability.router,
)
OPENAPI_PATH: Final = "/api/openapi.json"


def make_api(pages: Path = BUILT) -> FastAPI:
    """Return the application without its door; `app.py` puts the middlewares around it."""
    api = FastAPI(
        title="popagent",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        routes=page_routes(pages),
        redirect_slashes=False,
    )
    for router in ROUTERS:
        api.router.routes.extend(router.routes)  # flat, so that a test can enumerate every route there is
    api.add_exception_handler(AppError, on_app_error)
    api.add_exception_handler(RequestValidationError, on_validation_error)
    api.add_exception_handler(HTTPException, on_http_exception)
    api.add_exception_handler(Exception, on_defect)
    _add_description(api)
    return api


def _add_description(api: FastAPI) -> None:
    rendered: list[bytes] = []

    async def openapi(request: Request) -> Response:
        del request
        if not rendered:
            rendered.append(json.dumps(describe(api)))
        return Response(rendered[0], media_type="application/json")

    api.router.add_api_route(
        OPENAPI_PATH, openapi, methods=["GET"], include_in_schema=False, route_class_override=JsonRoute
    )


def described() -> dict[str, Any]:
    """Return the OpenAPI document of the API."""
    return describe(make_api())
