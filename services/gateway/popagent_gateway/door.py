"""The one place that lets a request in: its Host, where it comes from, and the key. Default deny."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from popagent_gateway.headers import header_values
from popagent_gateway.refusing import refuse
from popagent_gateway.settings import WILDCARDS, GatewaySettings
from popagent_kit.errors import AppError, ForbiddenError, UnauthorizedError
from popagent_kit.settings import reveal
from popagent_telemetry import metrics

KEY_HEADER: Final = b"x-popagent-key"
API: Final = "api"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

REFUSALS: Final = metrics.counter(
    "popagent_http_refusals_total", "Requests turned away at the door, by reason", ("reason",)
)


class MisdirectedError(AppError):
    """This name does not belong to popagent here; set POPAGENT_PUBLIC_URL to the address you use."""

    code = "misdirected"
    http_status = 421


def is_page(path: str) -> bool:
    """Tell whether `path` is an address of the page, which strangers may read; all else needs the key.

    What could be taken for the API by anybody who reads paths more loosely than our router is none.
    """
    first, *others = path.removesuffix("/").split("/")[1:] or ["page"]
    return (
        path.startswith("/")
        and path.isprintable()
        and "\\" not in path
        and first.lower() != API
        and not {"", ".", ".."} & {first, *others}
    )


def key_digest(settings: GatewaySettings) -> bytes | None:
    """Return the SHA-256 of the key, None when the door has none."""
    key = reveal(settings.api_key)
    return None if key is None else hashlib.sha256(key.encode()).digest()


def key_id(settings: GatewaySettings) -> str | None:
    """Return what tells one key from another without showing it: the first 12 hex digits of its digest."""
    digest = key_digest(settings)
    return None if digest is None else digest.hex()[:12]


class Door:
    """ASGI middleware; what it refuses never reaches a route, and the answer says the same to all."""

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self.app = app
        self._digest = key_digest(settings)
        self._public_origin = settings.public_url
        public_host = urlsplit(settings.public_url).hostname if settings.public_url else None
        self._hosts = LOOPBACK_NAMES | {name for name in (public_host, settings.host.lower().strip("[]")) if name}
        # Behind a wildcard the machine has addresses that we do not know. A literal address cannot be rebound by a
        # foreign DNS server, a name can.
        self._any_address = settings.host in WILDCARDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with 421, 403 or 401."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        REFUSALS.labels(refusal.code).inc()
        await refuse(refusal, scope, receive, send)

    def _refusal(self, scope: Scope) -> AppError | None:
        hosts = header_values(scope, b"host")
        host = _authority(hosts[0]) if len(hosts) == 1 else None
        if host is None or not self._is_ours(host[0]):
            return MisdirectedError()
        if not self._same_origin(scope, host):
            return ForbiddenError("Requests from other web pages are not accepted.")
        if not _is_public(scope) and not self._has_key(scope):
            return UnauthorizedError()
        return None

    def _is_ours(self, name: str) -> bool:
        if name in self._hosts:
            return True
        if not self._any_address:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _same_origin(self, scope: Scope, host: tuple[str, int | None]) -> bool:
        site = header_values(scope, b"sec-fetch-site")
        if not _is_public(scope) and any(value not in {b"same-origin", b"none"} for value in site):
            return False
        for value in header_values(scope, b"origin"):
            origin = value.decode("latin-1").lower()
            if origin == self._public_origin:
                continue
            scheme, separator, authority = origin.partition("://")
            found = _authority(authority.encode("latin-1"))
            if not separator or scheme not in DEFAULT_PORTS or found is None:
                return False
            if _with_port(found, scheme) != _with_port(host, scheme):
                return False
        return True

    def _has_key(self, scope: Scope) -> bool:
        if self._digest is None:
            return True
        sent = header_values(scope, KEY_HEADER)
        # One path for a missing, a wrong and a repeated key: same work, same answer.
        digest = hashlib.sha256(sent[0] if len(sent) == 1 else b"").digest()
        return hmac.compare_digest(digest, self._digest)


def _is_public(scope: Scope) -> bool:
    return scope["method"] in SAFE_METHODS and is_page(scope["path"])


def _authority(value: bytes) -> tuple[str, int | None] | None:
    """Return (lower-case host, port) of `host[:port]`, or None for anything else."""
    text = value.decode("latin-1").lower()
    if not text or any(mark in text for mark in "/\\?#@ \t,"):
        return None
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (name.rstrip("."), port) if name else None


def _with_port(authority: tuple[str, int | None], scheme: str) -> tuple[str, int]:
    name, port = authority
    return name, DEFAULT_PORTS[scheme] if port is None else port
