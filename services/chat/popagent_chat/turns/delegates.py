"""What specialists were asked and said: threads of their own, written under the lease of the turn they worked for."""

from __future__ import annotations

from typing import Final

from popagent_agent.ports import DelegateThread
from popagent_agent.tokens import estimate_tokens
from popagent_chat.threads import store as threads
from popagent_chat.threads.words import said
from popagent_chat.turns.store import LeasedTurn
from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_rows.leased import Lease
from popagent_runs.leases import as_run
from popagent_runs.waiting import while_held

INSERT: Final = Query(
    None,
    """
    insert into delegations (thread_id, session_id, turn_id, call_id, agent_id, state, input_tokens, output_tokens)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    """,
)

# Nobody searches what delegates said, so it has no row in message_texts.
ADD_MESSAGE: Final = Query(
    None,
    """
    insert into messages (thread_id, id, seq, parent_id, role, parts, metadata, token_count, sealed_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp())
    """,
)

IS_STORED: Final = Query(bool, "select exists (select 1 from delegations where thread_id = $1)")

SET_HEAD: Final = Query(None, "update threads set head_id = $2, next_seq = $3 where id = $1")

DELETE_OF_SESSION: Final = Query(
    None, "delete from threads where id in (select thread_id from delegations where session_id = $1)"
)

DELETE_SOME_OF_SESSION: Final = Query(
    None,
    "delete from threads where id in (select thread_id from delegations where session_id = $1 limit $2)",
)


class DelegateThreads:
    """The threads of one turn's delegates."""

    def __init__(self, pool: Pool, lease: Lease[LeasedTurn]) -> None:
        self._pool = pool
        self._lease = lease

    async def keep(self, thread: DelegateThread) -> None:
        """Store thread, messages and delegation in one fenced transaction; raises the loop's LeaseLostError.

        While PostgreSQL is away it is tried again, for as long as the turn is ours: the work was done.
        """
        with as_run():
            await while_held(self._lease, lambda: self._store(thread), "the thread of a delegate")

    async def _store(self, thread: DelegateThread) -> None:
        turn = self._lease.row
        async with self._pool.transaction() as conn:
            await self._lease.fence(conn)
            # A commit may have been carried out without an answer.
            if await IS_STORED.value(conn, thread.thread_id):
                return
            await threads.CREATE.run(conn, thread.thread_id, "delegate", thread.resource_id)
            parent = None
            for seq, message in enumerate(thread.messages, start=1):
                await ADD_MESSAGE.run(
                    conn,
                    thread.thread_id,
                    message["id"],
                    seq,
                    parent,
                    message["role"],
                    message["parts"],
                    message["metadata"],
                    estimate_tokens(said(message["parts"])),
                )
                parent = message["id"]
            await SET_HEAD.run(conn, thread.thread_id, parent, len(thread.messages) + 1)
            await INSERT.run(
                conn,
                thread.thread_id,
                turn.session_id,
                turn.id,
                thread.call_id,
                thread.agent_id,
                thread.state,
                thread.usage.input_tokens,
                thread.usage.output_tokens,
            )
