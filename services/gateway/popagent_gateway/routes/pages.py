"""The web page: what `make ui` built, read from disk when it is asked for. It holds nothing that needs a key."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from popagent_gateway.door import is_page
from popagent_gateway.errors import response_for
from popagent_kit.errors import NotFoundError

log = logging.getLogger(__name__)

BUILT: Final = Path(__file__).parents[1] / "static"
NOT_BUILT: Final = "The web page was not built: run `make ui`. The API and the command line work without it.\n"
# At the root of the site, whatever the page's own addresses are.
ICONS: Final = frozenset({"/favicon.svg", "/favicon.ico"})
TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
# The build writes these beside what is worth it; the first one that the client takes is sent.
CODINGS: Final = {"br": ".br", "gzip": ".gz"}
# The name of an asset holds a digest of its content.
FOR_EVER: Final = "public, max-age=31536000, immutable"
# Browsers ask for the icon again and again, also when only the address changed.
FOR_A_DAY: Final = "public, max-age=86400"
# The name of a file has 255 bytes at most, and its packed double is longer.
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")


class PageRoute(Route):
    """A route that never takes what belongs to the API, whatever its pattern says."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match like any route, below the addresses of pages only."""
        if scope["type"] != "http" or not is_page(scope["path"]):
            return Match.NONE, {}
        return super().matches(scope)


def page_routes(folder: Path = BUILT) -> list[BaseRoute]:
    """Return the routes of what was built into `folder`; every address of the page itself is the same document."""

    async def asset(request: Request) -> Response:
        return await run_in_threadpool(_asset, folder / "assets", request)

    async def icon(request: Request) -> Response:
        del request
        content = await run_in_threadpool(_content, folder / "favicon.svg")
        if content is None:
            return response_for(NotFoundError())
        return Response(content, media_type=TYPES[".svg"], headers={"cache-control": FOR_A_DAY})

    async def document(request: Request) -> Response:
        return await run_in_threadpool(_document, folder / "index.html", request)

    return [
        PageRoute("/assets/{name:path}", asset, methods=["GET"]),
        *(PageRoute(path, icon, methods=["GET"]) for path in sorted(ICONS)),
        PageRoute("/{address:path}", document, methods=["GET"]),
    ]


def _document(file: Path, request: Request) -> Response:
    content = _content(file)
    if content is None:
        return PlainTextResponse(NOT_BUILT, 503, headers={"cache-control": "no-store"})
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    # A browser takes over the headers of a 304, so its type, and with it its policy, are the document's.
    known = tag in (value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(","))
    headers = {"cache-control": "no-cache", "etag": tag}
    return Response(b"" if known else content, 304 if known else 200, headers, TYPES[".html"])


def _asset(folder: Path, request: Request) -> Response:
    name: str = request.path_params["name"]
    media_type = TYPES.get(Path(name).suffix)
    content = _content(folder / name) if media_type and _NAME.fullmatch(name) else None
    if content is None:
        return response_for(NotFoundError())
    headers = {"cache-control": FOR_EVER, "vary": "accept-encoding"}
    for coding in _accepted(request.headers.get("accept-encoding", "")):
        packed = _content(folder / f"{name}{CODINGS[coding]}")
        if packed is not None:
            return Response(packed, headers={**headers, "content-encoding": coding}, media_type=media_type)
    return Response(content, headers=headers, media_type=media_type)


def _accepted(header: str) -> Iterator[str]:
    """Yield the codings of ours that the client names without refusing them, best first."""
    named = {}
    for value in header.lower().split(","):
        coding, *parameters = (part.strip() for part in value.split(";"))
        named[coding] = not any(re.fullmatch(r"q=0(\.0*)?", parameter) for parameter in parameters)
    return (coding for coding in CODINGS if named.get(coding))


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        # To strangers it is absent; what is wrong stands in the log.
        log.warning("a file of the page cannot be read", extra={"file": file.name, "cause": repr(error)})
        return None
