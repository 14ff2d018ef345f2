"""The embedded model reads how the next turn begins before it is asked: once when it has loaded, then after a change.

It reads tens of tokens a second, so a first answer would wait for the instructions and the tools. Nothing is asked of
a server that somebody connected: only our own has such a door, and it puts every question before it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from popagent_chat.deps import RunDeps
from popagent_chat.turns.composing import first_step
from popagent_chat.turns.context import outlook
from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_models.warm_up import warm_up

log = logging.getLogger(__name__)

# Edits come in bursts, and one that is told of may not be committed yet.
SETTLE_S: Final = 1.0


class Warming:
    """One task of this process; it sleeps until `changed` is called."""

    def __init__(self, deps: RunDeps) -> None:
        self._deps = deps
        self._changed = asyncio.Event()
        self._changed.set()
        self._read: bytes | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; without an embedded model there is nothing to do."""
        if self._deps.models.endpoints.embedded.client.endpoint is not None:
            self._task = asyncio.create_task(self._keep(), name="read ahead")

    def changed(self) -> None:
        """Look again at what a turn begins with: something that it is made of was edited."""
        self._changed.set()

    async def stop(self) -> None:
        """End at once; the model server stops reading when we hang up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        while True:
            await self._changed.wait()
            if self._read is not None:
                await asyncio.sleep(SETTLE_S)
            self._changed.clear()
            try:
                await self._read_ahead()
            except AppError as error:
                # A turn would say the same to the person; until then nobody misses anything.
                log.warning("nothing was read ahead", extra={"reason": error.message})
            except Exception:
                log.exception("nothing was read ahead")

    async def _read_ahead(self) -> None:
        context = await outlook(self._deps)
        if context is None:
            return
        with context:
            request = first_step(context)
            stable = json.dumps([request.model, request.messages, request.tools])
            if stable == self._read:
                return
            began = time.monotonic()
            whole = await warm_up(context.model.upstream(), request)
            self._read = stable
        how = "the embedded model knows how a turn begins" if whole else "a question came before it was read ahead"
        log.info(how, extra={"seconds": round(time.monotonic() - began, 1)})
