"""Headers: how those of a request are read, and those that every answer carries."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page runs its own files, talks to its own door, and loads nothing from anywhere else; text never becomes code.
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
COMMON: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
# For what is answered below the application.
API_ANSWER: Final = {**COMMON, "content-security-policy": API_POLICY, "cache-control": "no-store"}


def header_values(scope: Scope, name: bytes) -> list[bytes]:
    """Return every value of the header `name` (lower case), in order."""
    return [value for key, value in scope["headers"] if key == name]


class SecurityHeaders:
    """ASGI middleware, around everything that answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers to whatever is answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in COMMON.items():
                    headers[name] = value
                is_page = headers.get("content-type", "").startswith("text/html")
                headers["content-security-policy"] = PAGE_POLICY if is_page else API_POLICY
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers)
