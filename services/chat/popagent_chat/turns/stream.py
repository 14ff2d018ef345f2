"""What a turn says: numbered frames for those who watch, the message so far for those who come later."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import orjson

from popagent_agent.emitter import ACTIVITY_PART
from popagent_bus.live import LivePublisher
from popagent_uistream.chunks import Chunk, message_metadata
from popagent_uistream.encode import encode
from popagent_uistream.reducer import MessageReducer, merge

log = logging.getLogger(__name__)

CHECKPOINT_S: Final = 1.0
CHECKPOINT_BYTES: Final = 64 * 1024
# Of a large message not every 64 kB are worth writing all of it again: each such checkpoint adds at least an eighth.
CHECKPOINT_SHARE: Final = 8
# Frames are kept so long behind a checkpoint: a NATS that is killed may have neither stored nor sent the last ones.
FORGET_AFTER_S: Final = 5.0
# These say nothing by themselves: they travel with what follows, so that the first text is not held back behind them.
QUIET: Final = frozenset(
    {"start", "start-step", "text-start", "reasoning-start", "text-end", "reasoning-end", "finish-step"}
)
HOLD_S: Final = 0.1
# Longer fragments are cut, so that no frame comes near what a message of NATS may have: a character is up to 6 bytes.
DELTA_CHARACTERS: Final = 64_000
DELTAS: Final = {"text-delta": "delta", "reasoning-delta": "delta", "tool-input-delta": "inputTextDelta"}
# Sent to those who watch and kept by the server alone (SE-4).
TRANSIENT: Final = (ACTIVITY_PART,)
ENDINGS: Final = frozenset({"finish", "abort", "error"})

Checkpoint = Callable[[orjson.Fragment, int], Awaitable[None]]


class TurnStream:
    """Publishes chunks as they come; holds back the last one until the end of the turn is stored.

    `opening` is the `start` chunk; `checkpoint(message, next_chunk)` is called within a second after something was
    said, or after 64 kB. With `message` and `next_chunk` it goes on where another process stopped.
    """

    def __init__(
        self,
        publisher: LivePublisher,
        checkpoint: Checkpoint,
        *,
        opening: Chunk,
        message: dict[str, Any] | None = None,
        next_chunk: int = 0,
    ) -> None:
        self._publisher = publisher
        self._checkpoint = checkpoint
        self._opening = opening
        self._reducer = MessageReducer(message, store_transient=TRANSIENT)
        self._next = next_chunk
        self._held: list[bytes] = []
        self._hold: asyncio.TimerHandle | None = None
        self._unsaved_bytes = 0
        self._saved_bytes = 0
        self._saved_at = time.monotonic()
        self._due: asyncio.TimerHandle | None = None
        self._saving: asyncio.Task[None] | None = None
        self._settled = False
        self._stored: deque[tuple[float, int]] = deque()
        self.ending: Chunk | None = None
        self.closing: dict[str, Any] = {}
        """What the message says at its end beside how it ended."""

    @property
    def next_chunk(self) -> int:
        """How many chunks were numbered, the held ending excluded."""
        return self._next

    @property
    def message(self) -> dict[str, Any]:
        """The message so far; live, so use it before the next chunk."""
        return self._reducer.message

    @property
    def said_anything(self) -> bool:
        """Whether there is more than the frame of an answer."""
        return any(part["type"] != "step-start" for part in self._reducer.message["parts"])

    def describe(self, metadata: dict[str, Any]) -> None:
        """Add to what the first chunk says of the message; too late once it was said."""
        self._opening = merge(self._opening, {"messageMetadata": metadata})

    def open(self) -> None:
        """Say the first chunk, unless it was said."""
        if self._next == 0:
            self._take(self._opening)

    async def emit(self, chunk: Chunk) -> None:
        """Take the next chunk, in legal order; `start` becomes our own, which is said once."""
        if chunk["type"] == "start":
            self.open()
        else:
            self._take(chunk)

    def catch_up(self, chunk: Chunk) -> None:
        """Take a chunk that was published before, without publishing it again."""
        self._reducer.apply(chunk)
        self._next += 1

    def note(self, metadata: dict[str, Any]) -> None:
        """Add metadata to the message; it travels with what follows."""
        chunk = message_metadata(metadata)
        self._reducer.apply(chunk)
        self._number(chunk, quiet=True)

    def forget_all_but_last_step(self) -> None:
        """Drop from the message, not from what watchers have seen, everything before its last step."""
        parts = self._reducer.message["parts"]
        last = max(index for index, part in enumerate(parts) if part["type"] == "step-start")
        self._reducer = MessageReducer({**self._reducer.message, "parts": parts[last:]}, store_transient=TRANSIENT)

    async def settle(self) -> None:
        """Wait for a checkpoint that is under way; none is begun after this."""
        self._settled = True
        self._cancel_timers()
        if self._saving is not None:
            await asyncio.gather(self._saving, return_exceptions=True)

    def finish(self) -> None:
        """Publish what was held back, the ending and the mark of the end; call it after the commit."""
        assert self.ending is not None, "a turn ends with finish, abort or error"
        held, self._held = self._held, []
        self._publisher.send(self._next - len(held), len(held) + 1, b"".join(held) + encode(self.ending), end=True)

    def close(self) -> None:
        """Let go of everything, whether the turn has ended or somebody else goes on with it."""
        self._settled = True
        self._cancel_timers()
        self._publisher.close()

    def _take(self, chunk: Chunk) -> None:
        self._reducer.apply(chunk)
        if chunk["type"] in ENDINGS:
            self.ending = chunk
            return
        for piece in _pieces(chunk):
            self._number(piece, quiet=chunk["type"] in QUIET)

    def _number(self, chunk: Chunk, *, quiet: bool) -> None:
        event = encode(chunk)
        self._held.append(event)
        self._next += 1
        self._unsaved_bytes += len(event)
        if not quiet:
            self._publish()
        elif self._hold is None and not self._settled:
            self._hold = asyncio.get_running_loop().call_later(HOLD_S, self._publish)
        self._plan_checkpoint()

    def _publish(self) -> None:
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None
        held, self._held = self._held, []
        if held:
            self._publisher.send(self._next - len(held), len(held), b"".join(held))

    def _plan_checkpoint(self) -> None:
        if self._settled or not self._unsaved_bytes or self._saving is not None:
            return
        if self._unsaved_bytes >= max(CHECKPOINT_BYTES, self._saved_bytes // CHECKPOINT_SHARE):
            self._begin_checkpoint()
        elif self._due is None:
            delay_s = max(0.0, self._saved_at + CHECKPOINT_S - time.monotonic())
            self._due = asyncio.get_running_loop().call_later(delay_s, self._begin_checkpoint)

    def _begin_checkpoint(self) -> None:
        """Freeze the message as text before anything is awaited: it grows on."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._publish()
        frozen = orjson.dumps(self._reducer.message)
        self._saved_at, self._saved_bytes, self._unsaved_bytes = time.monotonic(), len(frozen), 0
        self._saving = asyncio.create_task(self._save(orjson.Fragment(frozen), self._next), name="turn checkpoint")

    async def _save(self, message: orjson.Fragment, next_chunk: int) -> None:
        try:
            await self._checkpoint(message, next_chunk)
        except Exception as error:  # noqa: BLE001 (a turn goes on without a checkpoint; a lost lease ends it elsewhere)
            log.info("checkpoint not stored", extra={"reason": str(error)})
            self._unsaved_bytes += 1  # so that it is tried again a second later, whether anything follows or not
        else:
            self._forget(next_chunk)
        self._saving = None
        self._plan_checkpoint()

    def _forget(self, next_chunk: int) -> None:
        now = time.monotonic()
        self._stored.append((now, next_chunk))
        if not self._publisher.connection.connected:
            return
        while self._stored[0][0] < now - FORGET_AFTER_S:
            self._publisher.forget_before(self._stored.popleft()[1])

    def _cancel_timers(self) -> None:
        for timer in (self._hold, self._due):
            if timer is not None:
                timer.cancel()
        self._hold = self._due = None


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    """Yield the chunk, a long fragment of text as several."""
    name = DELTAS.get(chunk["type"])
    if name is None or len(chunk[name]) <= DELTA_CHARACTERS:
        yield chunk
        return
    for at in range(0, len(chunk[name]), DELTA_CHARACTERS):
        yield {**chunk, name: chunk[name][at : at + DELTA_CHARACTERS]}
