"""End a turn whose owner is gone: what it had said is taken from the checkpoint and the frames after it."""

from __future__ import annotations

import logging

from popagent_bus.live import stored_frames
from popagent_chat.deps import ChatDeps
from popagent_chat.turns.ending import Ending, close_with, end_turn
from popagent_chat.turns.run import INTERRUPTED, carry_out
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_proto import matrix
from popagent_rows.leased import Lease, Outcome
from popagent_uistream.parse import parse

log = logging.getLogger(__name__)


async def recover(deps: ChatDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> Outcome:
    """Store the partial message as interrupted and publish the end; a turn that had said nothing is run instead."""
    turn = lease.row
    subject = matrix.live_subject("chat", "turns", turn.id)
    async for frame in stored_frames(deps.bus, subject, from_chunk=turn.next_chunk):
        for chunk in parse(frame.data):
            stream.catch_up(chunk)
    if stream.next_chunk == 0:
        return await carry_out(deps, lease, stream)
    log.warning("turn ends interrupted", extra={"turn": turn.id, "chunks": stream.next_chunk})
    ending = {"type": "error", "errorText": INTERRUPTED}
    error = {"class": "interrupted", "text": INTERRUPTED}
    await close_with(stream, ending, {"error": error, "state": "interrupted"})
    await end_turn(deps, lease, stream, Ending("interrupted", error_class="interrupted"))
    return None
