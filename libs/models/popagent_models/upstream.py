"""The wire to the model server. The only module that imports the vendor's client; it is used for requests alone.

Its own stream and response objects are never touched: they cost several times what parsing costs, and give up on
answers that are common in the wild.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
from typing import Any, Final

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from popagent_models.endpoint import Endpoint
from popagent_models.errors import ModelConfigurationError, ModelError
from popagent_models.failures import no_headers, retry_after, unreachable

log = logging.getLogger(__name__)

# What may leave this machine; the client would add platform details and, from its own variables, foreign identities.
HEADERS_SENT: Final = frozenset(
    {
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "accept",
        "accept-encoding",
        "user-agent",
    }
)
LONGEST_DETAIL: Final = 64 * 1024
KEEP_ALIVE_S: Final = 30.0


class RefusedError(Exception):
    """The server answered with a status that is not a success; `detail` are its own words."""

    def __init__(self, status: int, detail: str, retry_after_s: float | None) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s


@functools.cache
def trusted(trust_env: bool) -> ssl.SSLContext:
    """Return the one TLS context of the process: reading the certificates takes a tenth of a second."""
    return httpx2.create_ssl_context(trust_env=trust_env)


class Upstream:
    """Connections to one endpoint, kept alive between calls."""

    def __init__(self, endpoint: Endpoint, *, connect_timeout_s: float) -> None:
        self.endpoint = endpoint
        self.in_use = 0
        self.retired = False
        self._http = httpx2.AsyncClient(
            # A proxy of the environment must not come between us and this machine.
            trust_env=not endpoint.is_loopback,
            verify=trusted(not endpoint.is_loopback),
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=connect_timeout_s),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_S),
            event_hooks={"request": [self._only_known_headers]},
        )
        self._client = AsyncOpenAI(
            # The client insists on a key; the hook above sends ours, or none.
            api_key=endpoint.key or "none",
            base_url=endpoint.url,
            max_retries=0,
            timeout=httpx2.Timeout(None, connect=connect_timeout_s),
            http_client=self._http,
        )

    async def open_stream(self, body: bytes, timeout_s: float) -> httpx2.Response:
        """Post a chat request and return the response once its headers are there; the caller closes it.

        Raises:
            RefusedError: The status is not a success.
            ModelError: There is no connection, or no answer within `timeout_s`.
        """
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        return await self._send(
            self._client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                content=body,
                options={"headers": headers},
                stream=True,
                stream_cls=None,
            ),
            timeout_s,
        )

    async def get(self, path: str, timeout_s: float) -> httpx2.Response:
        """Get `path`; the body is not read yet."""
        return await self._send(
            self._client.get(path, cast_to=httpx2.Response, stream=True, stream_cls=None),
            timeout_s,
        )

    async def close(self) -> None:
        """Close every connection, also those in use."""
        await self._client.close()

    async def retire(self) -> None:
        """Close once the last call has ended."""
        self.retired = True
        if self.in_use == 0:
            await self.close()

    async def returned(self) -> None:
        """Note the end of a call that was counted in `in_use`."""
        self.in_use -= 1
        if self.retired and self.in_use == 0:
            await self.close()

    async def _send(self, call: Any, timeout_s: float) -> httpx2.Response:
        host = self.endpoint.host
        try:
            async with asyncio.timeout(timeout_s):
                response: httpx2.Response = await call
                return response
        except APIStatusError as error:
            detail = error.response.text[:LONGEST_DETAIL]
            raise RefusedError(error.status_code, detail, retry_after(error.response.headers)) from error
        except APITimeoutError as error:
            raise unreachable(host) from error
        except APIConnectionError as error:
            raise self._connection_error(error) from error
        except TimeoutError as error:
            raise no_headers(host, timeout_s) from error

    def _connection_error(self, error: APIConnectionError) -> ModelError:
        cause = error.__cause__
        log.warning(
            "no connection to the model server", extra={"host": self.endpoint.host, "cause": type(cause).__name__}
        )
        if isinstance(cause, httpx2.InvalidURL | httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
            return ModelConfigurationError(
                "POPAGENT_MODEL_URL or POPAGENT_MODEL_KEY, or the connection in the settings, holds characters "
                "that cannot be sent."
            )
        return unreachable(self.endpoint.host)

    async def _only_known_headers(self, request: httpx2.Request) -> None:
        for name in list(request.headers):
            if name.lower() not in HEADERS_SENT:
                del request.headers[name]
        request.headers["user-agent"] = "popagent"
        # Compressed bodies would be unpacked without a bound.
        request.headers["accept-encoding"] = "identity"
        if self.endpoint.key:
            request.headers["authorization"] = f"Bearer {self.endpoint.key}"
