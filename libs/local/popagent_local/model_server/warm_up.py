"""Reading what prompts will begin with while nobody asks: whoever asks goes first, and finds what was read so far."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from popagent_kit.errors import UnavailableError
from popagent_local.model_server.chat import STREAMED, broken
from popagent_local.model_server.shim import Plan
from popagent_local.model_server.upstream import Upstream, events

log = logging.getLogger(__name__)

# The listener writes at least one word behind what it reads.
FEWEST_TOKENS: Final = 1


class WarmUp:
    """At most one reading, and none while there are `questions`.

    `tokens` is the length of the last prompt that was read to its end, 0 before.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.questions = 0
        self._reading: asyncio.Task[int] | None = None

    @property
    def reads(self) -> bool:
        """Tell whether it reads now."""
        return self._reading is not None

    def give_way(self) -> None:
        """Stop reading: somebody asks."""
        if self._reading is not None:
            self._reading.cancel()

    async def read(self, upstream: Upstream, plan: Plan) -> bool:
        """Tell whether the prompt of `plan` was read to its end; a newer reading ends an older one.

        Raises:
            UnavailableError: The listener does not answer, or refuses it.
        """
        if self.questions:
            return False
        self.give_way()
        began = time.monotonic()
        asked = plan.decision or plan.answer or {}
        task = asyncio.create_task(_tokens_read(upstream, asked["messages"]), name="read a prompt ahead")
        self._reading = task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            if self._reading is task:
                self._reading = None
        seconds = round(time.monotonic() - began, 1)
        if task.cancelled():
            log.info("stopped reading ahead: somebody asks", extra={"seconds": seconds})
            return False
        self.tokens = task.result()
        log.info("prompt read ahead", extra={"tokens": self.tokens, "seconds": seconds})
        return True


class QuestionsFirst:
    """Stops reading ahead for as long as a request to `path` lasts, its streamed answer included."""

    def __init__(self, app: ASGIApp, warm_up: WarmUp, path: str) -> None:
        self.app = app
        self.warm_up = warm_up
        self.path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        if scope["type"] != "http" or scope["path"] != self.path:
            await self.app(scope, receive, send)
            return
        self.warm_up.questions += 1
        self.warm_up.give_way()
        try:
            await self.app(scope, receive, send)
        finally:
            self.warm_up.questions -= 1


async def _tokens_read(upstream: Upstream, messages: Any) -> int:
    response = await upstream.ask({"messages": messages, "max_tokens": FEWEST_TOKENS, **STREAMED})
    try:
        if response.status_code != httpx2.codes.OK:
            raise UnavailableError(f"The chat model refused to read ahead: {response.status_code}.")
        tokens = 0
        async for event in events(response):
            if event and "error" in event:
                raise UnavailableError("The chat model broke off while it read ahead.")
            if event and event.get("usage"):
                tokens = event["usage"]["prompt_tokens"]
        return tokens
    except (httpx2.HTTPError, ValueError) as error:
        raise broken(error) from error
    finally:
        await response.aclose()
