"""How a turn ends: message, state and events in one transaction under the fence, then the mark for those who watch."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from popagent_agent.tokens import estimate_tokens
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import store as sessions
from popagent_chat.threads import store as threads
from popagent_chat.turns import store
from popagent_chat.turns.store import TURNS, LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_db.pool import Connection
from popagent_kit.errors import UnavailableError
from popagent_kit.text import excerpt
from popagent_proto.chat.sessions import SessionChanged
from popagent_proto.chat.turns import TurnEnded, TurnState
from popagent_rows.leased import Lease, LeaseLostError
from popagent_uistream.chunks import Chunk
from popagent_uistream.state import StreamState

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
EXCERPT_CHARACTERS: Final = 8_000


@dataclass(frozen=True)
class Ending:
    """What is known at the end."""

    state: TurnState
    error_class: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


async def end_turn(deps: ChatDeps, lease: Lease[LeasedTurn], stream: TurnStream, ending: Ending) -> None:
    """Store the end, again and again while PostgreSQL is away, until the lease is over; then tell the watchers.

    Raises:
        LeaseLostError: Another process ends this turn; nothing was written.
    """
    await stream.settle()
    unsure = False
    while True:
        try:
            lease.check()
            await _store(deps, lease, stream, ending)
        except UnavailableError as error:
            # The commit itself may have been carried out without an answer.
            unsure = True
            log.warning("the end of a turn waits for the database", extra={"reason": error.message})
            await asyncio.sleep(RETRY_S)
        except LeaseLostError:
            if not (unsure and await _was_stored(deps, lease.row, stream)):
                raise
            break
        else:
            break
    stream.finish()


async def _was_stored(deps: ChatDeps, turn: LeasedTurn, stream: TurnStream) -> bool:
    """Tell whether the stored end is this one."""
    async with deps.pool.acquire() as conn:
        stored = await store.GET.first(conn, turn.id)
    return stored is not None and stored.ending == stream.ending and stored.next_chunk == stream.next_chunk + 1


async def close_with(stream: TurnStream, ending: Chunk, metadata: dict[str, Any]) -> None:
    """Close whatever is open, add `metadata` and hold `ending` as the last chunk."""
    for chunk in StreamState.of(stream.message).close_open():
        await stream.emit(chunk)
    await stream.note(metadata)
    await stream.emit(ending)


async def _store(deps: ChatDeps, lease: Lease[LeasedTurn], stream: TurnStream, ending: Ending) -> None:
    turn = lease.row
    message = {**stream.message, "id": turn.assistant_message_id, "role": "assistant"}
    if not message["parts"]:
        # The client refuses a message without parts.
        message["parts"] = [{"type": "step-start"}]
    text = text_of(message)
    # Before the commit: a beat that finds the row ended must not take it for lost.
    lease.over()
    async with deps.outbox.transaction() as conn:
        await TURNS.fence(conn, turn)
        await _append_and_settle(conn, turn, message, text, stream=stream, ending=ending)
        await _tell(deps, conn, turn, text, ending)


async def _append_and_settle(
    conn: Connection, turn: LeasedTurn, message: dict[str, Any], text: str, *, stream: TurnStream, ending: Ending
) -> None:
    await threads.append(
        conn, turn.session_id, message, parent_id=turn.user_message_id, token_count=estimate_tokens(text)
    )
    await TURNS.fenced(
        conn,
        turn,
        store.END,
        ending.state,
        stream.ending,
        stream.next_chunk + 1,
        ending.error_class,
        ending.input_tokens,
        ending.output_tokens,
    )


async def _tell(deps: ChatDeps, conn: Connection, turn: LeasedTurn, text: str, ending: Ending) -> None:
    row = await sessions.set_running(conn, turn.session_id, None)
    ended = TurnEnded(
        aggregate_id=turn.id,
        version=1,
        turn_id=turn.id,
        session=row.summary(),
        state=ending.state,
        error_class=ending.error_class,
        excerpt=excerpt(text, EXCERPT_CHARACTERS),
        input_tokens=ending.input_tokens,
        output_tokens=ending.output_tokens,
        trace_id=turn.trace_id,
    )
    await deps.outbox.add(conn, ended)
    await deps.outbox.add(conn, SessionChanged(aggregate_id=row.id, version=row.version, session=row.summary()))


def text_of(message: dict[str, Any]) -> str:
    """Return the visible text of a message."""
    return "\n\n".join(part["text"] for part in message["parts"] if part["type"] == "text" and part["text"])
