"""One POST to a hook's server: at a vetted address, without redirects and proxies, with a bounded answer."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from popagent_chat.hooks.failure import HookFailedError
from popagent_chat.hooks.origins import may_be_reached
from popagent_models.upstream import trusted

LONGEST_ANSWER: Final = 64 * 1024


class _NoAddressError(OSError):
    """The name leads to no address that it may have."""


class VettedResolver(AbstractResolver):
    """Resolves names, and gives only the addresses that they may have; the connection goes to one of these."""

    def __init__(self) -> None:
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses; raise OSError when there are none."""
        found = await self._system.resolve(host, port, family)
        allowed = [each for each in found if may_be_reached(each["host"], host)]
        if not allowed:
            raise _NoAddressError(f"{host} leads to no address that it may have")
        return allowed

    async def close(self) -> None:
        """Let go of what the system's resolver holds."""
        await self._system.close()


class Poster:
    """Posts for one process; each request has a connection of its own, so that its address is looked up anew."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the body of a success, at most LONGEST_ANSWER bytes; the caller bounds the time.

        Raises:
            HookFailedError: No connection, no success, or too long an answer.
        """
        if self._session is None:
            self._session = _connections()
        try:
            response = await self._session.post(
                url,
                data=body,
                headers={"content-type": "application/json", "accept": "application/json", **headers},
                allow_redirects=False,
                ssl=trusted(trust_env=True) if urlsplit(url).scheme == "https" else True,
            )
            try:
                return await _answer(response)
            finally:
                response.close()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise HookFailedError(_why(error)) from error

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()


async def _answer(response: aiohttp.ClientResponse) -> bytes:
    if 300 <= response.status < 400:
        raise HookFailedError(f"answered {response.status}, a redirect, which is not followed")
    if not 200 <= response.status < 300:
        raise HookFailedError(f"answered {response.status}")
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise HookFailedError(f"answered more than {LONGEST_ANSWER // 1024} kB")
    return bytes(body)


def _why(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, _NoAddressError):
        return "has a name that leads to a private address; name the address itself in POPAGENT_HOOK_ORIGINS"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "has a name that is not found"
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return "is not to be reached"
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return "broke the connection off"
    return "answered what is not HTTP"


def _connections() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=VettedResolver(), use_dns_cache=False, limit=0, force_close=True),
        headers={"user-agent": "popagent", "accept-encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )
