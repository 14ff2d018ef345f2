"""Go on with a turn that another attempt began: what it had said is in the checkpoint and the frames after it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AbstractContextManager
from typing import Final

from opentelemetry.trace import Span

from popagent_bus.live import stored_frames
from popagent_chat.deps import RunDeps
from popagent_chat.turns import store
from popagent_chat.turns.closing import BROKEN, close_open, failed, interrupted
from popagent_chat.turns.ending import end_turn
from popagent_chat.turns.run import attributes_of, carry_out, note_ending
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_kit.errors import UnavailableError
from popagent_proto import matrix
from popagent_rows.leased import Lease
from popagent_telemetry import extract, span
from popagent_uistream.parse import parse

log = logging.getLogger(__name__)

# A turn that ends every process which takes it, or that no attempt could store, is ended with a sentence instead.
MOST_ATTEMPTS: Final = 5
# So long NATS is waited for; after that the checkpoint must do.
CATCH_UP_S: Final = 20.0
CATCH_UP_RETRY_S: Final = 0.5


async def recover(deps: RunDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> None:
    """Store what was said as interrupted and publish the end; a turn that had said and done nothing is run again.

    Raises:
        LeaseLostError: Another process has the turn.
    """
    turn = lease.row
    await _catch_up(deps, stream, turn.id)
    if turn.attempt > MOST_ATTEMPTS:
        with _span(turn) as current:
            log.error("turn given up", extra={"turn": turn.id, "attempt": turn.attempt})
            ending = await failed(stream, "internal", BROKEN)
            # Whatever it is that cannot be stored, this sentence can.
            stream.forget_all_but_last_step()
            note_ending(current, ending)
            await end_turn(deps, lease, stream, ending)
        return
    if not stream.said_anything and not await _did_anything(deps, turn):
        if stream.next_chunk:
            await close_open(stream)
        await carry_out(deps, lease, stream)
        return
    with _span(turn) as current:
        log.warning("turn ends interrupted", extra={"turn": turn.id, "chunks": stream.next_chunk})
        ending = await interrupted(stream)
        note_ending(current, ending)
        await end_turn(deps, lease, stream, ending)


def _span(turn: LeasedTurn) -> AbstractContextManager[Span]:
    return span("chat.turn.recover", attributes_of(turn), parent=extract(turn.trace_headers))


async def _catch_up(deps: RunDeps, stream: TurnStream, turn_id: str) -> None:
    """Take the frames that were published after the checkpoint."""
    subject = matrix.live_subject("chat", "turns", turn_id)
    give_up_at = time.monotonic() + CATCH_UP_S
    while True:
        try:
            async for frame in stored_frames(deps.bus, subject, from_chunk=stream.next_chunk):
                for chunk in parse(frame.data):
                    stream.catch_up(chunk)
            return
        except ValueError:
            log.exception("what was published cannot be read on", extra={"turn": turn_id, "chunk": stream.next_chunk})
            return
        except UnavailableError as error:
            if time.monotonic() > give_up_at:
                log.warning("frames are not to be had", extra={"turn": turn_id, "reason": error.message})
                return
            await asyncio.sleep(CATCH_UP_RETRY_S)


async def _did_anything(deps: RunDeps, turn: LeasedTurn) -> bool:
    async with deps.pool.acquire() as conn:
        return await store.HAS_INTENTS.value(conn, turn.id)
