"""Asking llama.cpp's listener, and reading its event stream."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2

from popagent_kit.errors import UnavailableError
from popagent_kit.text import one_line

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S: Final = 5.0
CHAT_PATH: Final = "/v1/chat/completions"
DATA: Final = b"data:"


class Upstream:
    """The listener at `address`. How long it thinks is the client's to bound: the client leaves, and we hang up."""

    def __init__(self, address: str, key: str) -> None:
        self._client = httpx2.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=4),
            trust_env=False,
        )

    async def ask(self, body: dict[str, Any]) -> httpx2.Response:
        """Return the open response, its body unread; whoever takes it closes it.

        Raises:
            UnavailableError: Nobody listens, or the connection broke before the headers.
        """
        request = self._client.build_request("POST", CHAT_PATH, json=body)
        try:
            return await self._client.send(request, stream=True)
        except httpx2.HTTPError as error:
            log.warning("the chat model's process does not answer", extra={"reason": one_line(str(error))})
            raise UnavailableError("The chat model's process does not answer.") from error

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()


async def events(response: httpx2.Response) -> AsyncIterator[dict[str, Any] | None]:
    """Yield the JSON object of each event, and None for the end mark.

    Raises:
        httpx2.HTTPError: The connection broke.
        ValueError: An event is not JSON.
    """
    # Lines end at "\n" alone: a text may hold U+2028 and its like, which the client's own line reader takes for ends.
    held = b""
    async for data in response.aiter_bytes():
        *lines, held = (held + data).split(b"\n")
        for line in lines:
            if line.startswith(DATA):
                payload = line.removeprefix(DATA).strip()
                yield None if payload == b"[DONE]" else json.loads(payload)
