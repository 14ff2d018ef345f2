"""The message so far, for whoever comes later than its beginning."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.threads import store as threads
from popagent_chat.threads.fitting import fitted
from popagent_chat.turns import store
from popagent_chat.turns.store import TurnRow
from popagent_chat.turns.stream import TRANSIENT
from popagent_db.pool import Connection
from popagent_proto.chat.turns import NothingRunsError, SnapshotTurn, TurnSnapshotView
from popagent_uistream.encode import DONE, encode_all
from popagent_uistream.snapshot import snapshot_chunks

# The events travel as text within JSON, which at most doubles them; a message of NATS has 8 MiB.
SNAPSHOT_BYTES: Final = 3_500_000

handlers = Handlers[ChatDeps]()


@handlers.answers(SnapshotTurn)
async def snapshot_turn(deps: ChatDeps, query: SnapshotTurn) -> TurnSnapshotView:
    """Return the running turn as stored at its last checkpoint, or a turn that has ended, whole."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        if query.turn_id is None:
            turn = await store.LIVE_OF_SESSION.first(conn, query.session_id)
        else:
            turn = await store.GET.first(conn, query.turn_id)
        if turn is None or turn.session_id != query.session_id:
            raise NothingRunsError
        sse = await _ended(conn, turn) if turn.ending is not None else _running(turn)
    return TurnSnapshotView(
        turn_id=turn.id,
        message_id=turn.assistant_message_id,
        state=turn.state,
        next_chunk=turn.next_chunk,
        sse=sse.decode(),
    )


def _running(turn: TurnRow) -> bytes:
    if turn.checkpoint is None:
        return b""
    return encode_all(snapshot_chunks(fitted(turn.checkpoint, SNAPSHOT_BYTES), transient=TRANSIENT))


async def _ended(conn: Connection, turn: TurnRow) -> bytes:
    message = await threads.FIND.one(conn, turn.session_id, turn.assistant_message_id)
    return encode_all(snapshot_chunks(fitted(message.ui(), SNAPSHOT_BYTES), ending=turn.ending)) + DONE
