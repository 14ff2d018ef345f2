"""What a turn says: numbered frames for those who watch, the message so far for those who come later."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from popagent_bus.live import LivePublisher
from popagent_uistream.chunks import Chunk, message_metadata
from popagent_uistream.encode import encode
from popagent_uistream.reducer import MessageReducer

log = logging.getLogger(__name__)

CHECKPOINT_S: Final = 1.0
CHECKPOINT_BYTES: Final = 64 * 1024
# These say nothing by themselves: they travel with what follows, so that the first text is not held back behind them.
QUIET: Final = frozenset({"start-step", "text-start", "reasoning-start", "text-end", "reasoning-end", "finish-step"})
# Sent to those who watch and kept by the server alone (SE-4).
TRANSIENT: Final = ("data-agentActivity",)
ENDINGS: Final = frozenset({"finish", "abort", "error"})

Checkpoint = Callable[[orjson.Fragment, int], Awaitable[None]]


class TurnStream:
    """Publishes chunks as they come; holds back the last one until the end of the turn is stored.

    `checkpoint(message, next_chunk)` is called about each second, or after 64 kB, while anything is said.
    """

    def __init__(
        self,
        publisher: LivePublisher,
        checkpoint: Checkpoint,
        *,
        message: dict[str, Any] | None = None,
        next_chunk: int = 0,
        start_metadata: dict[str, Any] | None = None,
    ) -> None:
        self._publisher = publisher
        self._checkpoint = checkpoint
        self._reducer = MessageReducer(message, store_transient=TRANSIENT)
        self._start_metadata = start_metadata or {}
        self._next = next_chunk
        self._held: list[bytes] = []
        self._unsaved_bytes = 0
        self._saved_at = time.monotonic()
        self._saving: asyncio.Task[None] | None = None
        self.ending: Chunk | None = None

    @property
    def next_chunk(self) -> int:
        """How many chunks were numbered, the held ending excluded."""
        return self._next

    @property
    def message(self) -> dict[str, Any]:
        """The message so far; live, so use it before the next chunk."""
        return self._reducer.message

    async def emit(self, chunk: Chunk) -> None:
        """Take the next chunk, in legal order."""
        if chunk["type"] == "start" and self._start_metadata:
            chunk = {**chunk, "messageMetadata": {**self._start_metadata, **chunk.get("messageMetadata", {})}}
        self._reducer.apply(chunk)
        if chunk["type"] in ENDINGS:
            self.ending = chunk
            return
        self._number(encode(chunk), quiet=chunk["type"] in QUIET)

    def catch_up(self, chunk: Chunk) -> None:
        """Take a chunk that was published before, without publishing it again."""
        self._reducer.apply(chunk)
        self._next += 1

    async def note(self, metadata: dict[str, Any]) -> None:
        """Add metadata to the message."""
        chunk = message_metadata(metadata)
        self._reducer.apply(chunk)
        self._number(encode(chunk), quiet=True)

    def finish(self) -> None:
        """Publish what was held back, the ending and the mark of the end; call it after the commit."""
        assert self.ending is not None, "a turn ends with finish, abort or error"
        held, first = self._taken()
        self._publisher.send(first, len(held) + 1, b"".join(held) + encode(self.ending), end=True)

    async def settle(self) -> None:
        """Wait for a checkpoint that is under way; none is begun after this."""
        self._saved_at = float("inf")
        if self._saving is not None:
            await asyncio.gather(self._saving, return_exceptions=True)

    def _number(self, event: bytes, *, quiet: bool) -> None:
        self._held.append(event)
        self._next += 1
        self._unsaved_bytes += len(event)
        if quiet:
            return
        held, first = self._taken()
        self._publisher.send(first, len(held), b"".join(held))
        self._save_if_due()

    def _taken(self) -> tuple[list[bytes], int]:
        held, self._held = self._held, []
        return held, self._next - len(held)

    def _save_if_due(self) -> None:
        due = time.monotonic() - self._saved_at >= CHECKPOINT_S or self._unsaved_bytes >= CHECKPOINT_BYTES
        if not due or self._saved_at == float("inf") or (self._saving is not None and not self._saving.done()):
            return
        self._saved_at = time.monotonic()
        self._unsaved_bytes = 0
        self._saving = asyncio.create_task(self._save(), name="turn checkpoint")

    async def _save(self) -> None:
        published = self._next - len(self._held)
        if self._held:
            return  # what is held is part of the message already; the next chunk brings the next chance
        try:
            # Frozen as text before anything is awaited: the message grows on.
            await self._checkpoint(orjson.Fragment(orjson.dumps(self._reducer.message)), published)
        except Exception as error:  # noqa: BLE001 (a turn goes on without a checkpoint; a lost lease ends it elsewhere)
            log.info("checkpoint not stored", extra={"reason": str(error)})
        else:
            self._publisher.forget_before(published)
