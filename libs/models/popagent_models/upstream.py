"""The wire to the model server: the only module that knows the HTTP client."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from popagent_models.endpoint import Endpoint
from popagent_models.errors import ModelConfigurationError, ModelError
from popagent_models.failures import no_headers, retry_after, unreachable
from popagent_web.addresses import gives_credentials
from popagent_web.outbound import VettedResolver
from popagent_web.tls import trusted

log = logging.getLogger(__name__)

LONGEST_DETAIL: Final = 64 * 1024
KEEP_ALIVE_S: Final = 30.0


class RefusedError(Exception):
    """The server answered with a status that is not a success; `detail` are its own words."""

    def __init__(self, status: int, detail: str, retry_after_s: float | None) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s


class BrokenOffError(Exception):
    """The connection ended before the body did."""


class Body:
    """The body of a success as it arrives; whoever has it closes it."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> bytes:
        """Return what has come, as soon as something has; nothing at the end.

        Raises:
            BrokenOffError: The rest will not come.
        """
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, ConnectionError) as error:
            raise BrokenOffError from error

    def close(self) -> None:
        """Let go of the connection: it is kept for another request when the body was read to its end."""
        self._response.close()


class Upstream:
    """Connections to one endpoint, kept alive between calls."""

    def __init__(self, endpoint: Endpoint, *, connect_timeout_s: float) -> None:
        self.endpoint = endpoint
        self.closed = False
        self._connect_timeout_s = connect_timeout_s
        # What may leave this machine, and nothing besides. Compressed bodies would be unpacked without a bound.
        self._headers = {"user-agent": "popagent", "accept-encoding": "identity"}
        if endpoint.key:
            self._headers["authorization"] = f"Bearer {endpoint.key}"
        self._session: aiohttp.ClientSession | None = None

    async def open_stream(self, body: bytes, timeout_s: float) -> Body:
        """Post a chat request and return the answer once its headers are there.

        Raises:
            RefusedError: The status is not a success.
            ModelError: There is no connection, or no answer within `timeout_s`.
        """
        return await self._send("POST", "/chat/completions", timeout_s, "text/event-stream", body)

    async def post(self, path: str, body: bytes, timeout_s: float) -> Body:
        """Post `body` to `path`; raises as `open_stream` does."""
        return await self._send("POST", path, timeout_s, "application/json", body)

    async def get(self, path: str, timeout_s: float) -> Body:
        """Get `path`; raises as `open_stream` does."""
        return await self._send("GET", path, timeout_s, "application/json")

    async def close(self) -> None:
        """Close every connection, also those in use."""
        self.closed = True
        if self._session is not None:
            await self._session.close()

    async def _send(self, method: str, path: str, timeout_s: float, accept: str, body: bytes | None = None) -> Body:
        host = self.endpoint.host
        headers = {**self._headers, "accept": accept}
        if body is not None:
            headers["content-type"] = "application/json"
        if self._session is None:
            self._session = self._connections()
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._session.request(
                    method, self.endpoint.url + path, data=body, headers=headers, allow_redirects=False
                )
                if 200 <= response.status < 300:
                    return Body(response)
                try:
                    detail = (await response.content.read(LONGEST_DETAIL)).decode("utf-8", "replace")
                finally:
                    response.close()
        except (aiohttp.ClientError, ValueError) as error:
            raise self._not_sent(error) from plain(error)
        except TimeoutError as error:
            raise no_headers(host, timeout_s) from error
        raise RefusedError(response.status, detail, retry_after(response.headers))

    def _not_sent(self, error: Exception) -> ModelError:
        log.warning(
            "no connection to the model server", extra={"host": self.endpoint.host, "cause": type(error).__name__}
        )
        if isinstance(error, aiohttp.InvalidURL) or not isinstance(error, aiohttp.ClientError):
            return ModelConfigurationError(
                "POPAGENT_MODEL_URL or POPAGENT_MODEL_KEY, or the connection in the settings, holds characters "
                "that cannot be sent."
            )
        return unreachable(self.endpoint.host)

    def _connections(self) -> aiohttp.ClientSession:
        tls = trusted(trust_env=not self.endpoint.is_loopback) if self.endpoint.url.startswith("https:") else True
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=VettedResolver(_may_be_asked), limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=tls
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            proxy=proxy_for(self.endpoint),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )


def _may_be_asked(address: str, _: str) -> bool:
    """A model server may be anywhere, in the operator's own network too, but not where clouds give credentials."""
    return not gives_credentials(address)


def plain(error: Exception) -> Exception:
    """Return why there is no connection as the system said it, so that its kinds can be told apart."""
    if not isinstance(error, aiohttp.ClientConnectorError):
        return error
    if isinstance(error.os_error, ConnectionResetError):
        return ssl.SSLError("the server hung up during the TLS handshake")
    return error.os_error


def proxy_for(endpoint: Endpoint) -> str | None:
    """Return the proxy that the environment names for this endpoint; none may come between us and this machine.

    Raises:
        ModelConfigurationError: It is of a kind that we do not speak.
    """
    parts = urlsplit(endpoint.url)
    if endpoint.is_loopback or proxy_bypass(parts.hostname or ""):
        return None
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all")
    if found is None:
        return None
    if "://" not in found:
        found = f"http://{found}"
    if urlsplit(found).scheme not in {"http", "https"}:
        raise ModelConfigurationError(
            f"The environment names a proxy for {parts.scheme} that is not an HTTP proxy. "
            f"Set {parts.scheme.upper()}_PROXY to one, or the model server's host in NO_PROXY."
        )
    return found
