"""The one client for servers that are no models: at vetted addresses, without redirects and proxies, bounded."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from popagent_web.tls import trusted

MayBeReached = Callable[[str, str], bool]
"""Tells of an address and the name that led to it whether the request may go there."""


class OutboundError(Exception):
    """No whole answer came; the message goes on after "It"."""


class AddressRefusedError(OutboundError):
    """The name leads to no address that it may have."""


class NotReachedError(OutboundError):
    """There is no connection: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; the body is read of a success alone. `retry_after` is its header as it came."""

    status: int
    content_type: str
    retry_after: str
    body: bytes

    @property
    def succeeded(self) -> bool:
        """Tell whether the status is one of success."""
        return 200 <= self.status < 300

    @property
    def redirects(self) -> bool:
        """Tell whether it names another place, which is never asked."""
        return 300 <= self.status < 400


class NoAddressError(OSError):
    """A name leads to no address that it may have."""


class VettedResolver(AbstractResolver):
    """Resolves names, and gives only the addresses that they may have; the connection goes to one of these."""

    def __init__(self, may_be_reached: MayBeReached) -> None:
        self._may_be_reached = may_be_reached
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses; raise OSError when there are none."""
        found = await self._system.resolve(host, port, family)
        allowed = [each for each in found if self._may_be_reached(each["host"], host)]
        if not allowed:
            raise NoAddressError(f"{host} leads to no address that it may have")
        return allowed

    async def close(self) -> None:
        """Let go of what the system's resolver holds."""
        await self._system.close()


class Outbound:
    """Sends for one process; each request has a connection of its own, so that its address is looked up anew.

    A URL whose host is an address goes there: whoever names it has vetted it.
    """

    def __init__(self, may_be_reached: MayBeReached, longest_bytes: int) -> None:
        self._may_be_reached = may_be_reached
        self._longest_bytes = longest_bytes
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, method: str, url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Return the answer, whatever its status; the caller bounds the time.

        Raises:
            OutboundError: No connection, what is not HTTP, or too long an answer.
        """
        if self._session is None:
            self._session = _connections(self._may_be_reached)
        try:
            response = await self._session.request(
                method,
                url,
                data=body,
                headers={"accept": "application/json", **(headers or {})},
                allow_redirects=False,
                ssl=trusted(trust_env=True) if urlsplit(url).scheme == "https" else True,
            )
            try:
                return await self._answer(response)
            finally:
                response.close()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failure(error) from error

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def _answer(self, response: aiohttp.ClientResponse) -> Answer:
        body = bytearray()
        while 200 <= response.status < 300 and (chunk := await response.content.readany()):
            body += chunk
            if len(body) > self._longest_bytes:
                raise OutboundError(f"answered more than {self._longest_bytes // 1024:,} kB")
        return Answer(response.status, response.content_type, response.headers.get("retry-after", ""), bytes(body))


def _failure(error: Exception) -> OutboundError:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, NoAddressError):
        return AddressRefusedError("has a name that leads to an address that it may not have")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NotReachedError("has a name that is not found")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return NotReachedError("is not to be reached")
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return OutboundError("broke the connection off")
    return OutboundError("answered what is not HTTP")


def _connections(may_be_reached: MayBeReached) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            resolver=VettedResolver(may_be_reached), use_dns_cache=False, limit=0, force_close=True
        ),
        headers={"user-agent": "popagent", "accept-encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )
