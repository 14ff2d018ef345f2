"""Ask a running turn to stop: a column and a wake-up; its owner ends it with the text it has."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.turns import store
from popagent_chat.turns.store import TurnRow
from popagent_proto.chat.turns import NothingRunsError, StopTurn, TurnView

handlers = Handlers[ChatDeps]()


@handlers.answers(StopTurn)
async def stop_turn(deps: ChatDeps, command: StopTurn) -> TurnView:
    """Return the turn that was asked to stop; it ends within moments."""
    turn = await request_stop(deps, command.session_id)
    if turn is None:
        raise NothingRunsError
    return turn.view(created=False)


async def request_stop(deps: ChatDeps, session_id: str) -> TurnRow | None:
    """Set the flag and wake every owner; None when nothing runs."""
    async with deps.pool.acquire() as conn:
        turn = await store.REQUEST_STOP.first(conn, session_id)
    if turn is not None:
        deps.turns.wake()
    return turn
