"""How a turn ends: message, state and event in one statement under the fence, then the mark for those who watch."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from popagent_agent.tokens import estimate_tokens
from popagent_chat.deps import RunDeps
from popagent_chat.threads import store as threads
from popagent_chat.threads.words import said
from popagent_chat.turns import store
from popagent_chat.turns.closing import Ending
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_db.pool import Connection
from popagent_kit.clock import now
from popagent_kit.errors import UnavailableError
from popagent_kit.text import excerpt
from popagent_proto.chat.turns import TurnEnded
from popagent_rows import outbox
from popagent_rows.leased import Lease, LeaseLostError

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
EXCERPT_CHARACTERS: Final = 8_000


async def end_turn(deps: RunDeps, lease: Lease[LeasedTurn], stream: TurnStream, ending: Ending) -> None:
    """Store the end, again and again while PostgreSQL is away, until another process has the turn; tell the watchers.

    Raises:
        LeaseLostError: Another process ends this turn; nothing was written.
    """
    turn = lease.row
    # From here on the fence alone decides: neither a late beat nor a stop of the process may cut off what is written.
    lease.over()
    took_s = (now() - turn.created_at).total_seconds()
    stream.note({**stream.closing, "state": ending.state, "durationMs": max(0, round(took_s * 1000))})
    await stream.settle()
    unsure = False
    while True:
        try:
            if not (unsure and await _was_stored(deps, turn)):
                await _store(deps, turn, stream, ending)
            break
        except UnavailableError as error:
            # The commit itself may have been carried out without an answer.
            unsure = True
            log.warning("the end of a turn waits for the database", extra={"turn": turn.id, "reason": error.message})
            await asyncio.sleep(RETRY_S)
    stream.finish()


async def _was_stored(deps: RunDeps, turn: LeasedTurn) -> bool:
    """Tell whether this attempt ended the turn."""
    async with deps.pool.acquire() as conn:
        stored = await store.GET.first(conn, turn.id)
    return stored is not None and stored.attempt == turn.attempt and stored.ending is not None


async def _store(deps: RunDeps, turn: LeasedTurn, stream: TurnStream, ending: Ending) -> None:
    """Write all of it in one statement; whoever changed the session since it was read has come further."""
    async with deps.pool.acquire() as conn:
        while not await _stored(conn, turn, stream, ending):
            pass
    deps.outbox.wake()


async def _stored(conn: Connection, turn: LeasedTurn, stream: TurnStream, ending: Ending) -> bool:
    """Store the end, unless the session is changed at this very moment.

    Raises:
        LeaseLostError: Another attempt has the turn, or it has ended.
    """
    message = stream.message
    text = said(message["parts"])
    seen = await store.SESSION_NOW.one(conn, turn.session_id)
    if seen.session is None:
        raise LeaseLostError(f"the session of turn {turn.id} was deleted")
    after = {"running_turn_id": None, "last_turn_state": ending.state, "updated_at": seen.now}
    event = TurnEnded(
        aggregate_id=turn.id,
        version=1,
        turn_id=turn.id,
        session=seen.session.model_copy(update=after).summary(),
        state=ending.state,
        error_class=ending.error_class,
        excerpt=excerpt(text, EXCERPT_CHARACTERS),
        input_tokens=ending.input_tokens,
        output_tokens=ending.output_tokens,
        trace_id=turn.trace_id,
    )
    ended = await store.END.one(
        conn,
        turn.id,
        turn.attempt,
        turn.owner,
        turn.session_id,
        seen.session.version,
        seen.now,
        *threads.columns_of(message, parent_id=turn.user_message_id, token_count=estimate_tokens(text)),
        *outbox.row_of(event),
        ending.state,
        stream.ending,
        stream.next_chunk + 1,
        ending.error_class,
        ending.input_tokens,
        ending.output_tokens,
    )
    if not ended.held:
        raise LeaseLostError(f"turn {turn.id}: attempt {turn.attempt} was taken over")
    return ended.stored
