"""The public pages: what this is, and how to talk to it. They run no script and ask nothing."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_STATIC: Final = files("popagent_gateway") / "static"
# Path → (file, type); the same paths as door.PUBLIC_PATHS, which a test compares.
PAGES: Final = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/favicon.svg": ("favicon.svg", "image/svg+xml"),
    "/favicon.ico": ("favicon.svg", "image/svg+xml"),
}


def page_routes() -> list[BaseRoute]:
    """Return one route a file, each read once."""
    return [_route(path, name, media_type) for path, (name, media_type) in PAGES.items()]


def _route(path: str, name: str, media_type: str) -> Route:
    content = (_STATIC / name).read_bytes()

    async def serve(request: Request) -> Response:
        del request
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    return Route(path, serve, methods=["GET"])
