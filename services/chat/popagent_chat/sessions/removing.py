"""How a session goes for good: a short one in one transaction, a long one piece by piece, seen by nobody any more.

Either way what was said goes first, then the thread, then the session, then hooks are told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from popagent_chat.deps import ChatDeps
from popagent_chat.hooks import store as hooks
from popagent_chat.sessions import store
from popagent_chat.sessions.handlers import SessionBusyError, SessionNotFoundError
from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import store as threads
from popagent_chat.turns import delegates
from popagent_chat.turns.stop import request_stop
from popagent_db.pool import Connection
from popagent_kit.errors import UnavailableError
from popagent_proto.chat.agents import ORCHESTRATOR
from popagent_proto.chat.sessions import SessionDeleted
from popagent_proto.common import JobView
from popagent_rows.jobs import Job
from popagent_runs.hooks.running import RunHooks

log = logging.getLogger(__name__)

KIND: Final = "sessions-remove"
# A message takes about 30 µs, so that the longest short one takes less than a second.
LONG_MESSAGES: Final = 20_000
PIECE_MESSAGES: Final = 5_000
PIECE_THREADS: Final = 200
LOOK_S: Final = 0.05
RESCUE_EVERY_S: Final = 600.0
RESCUED_AFTER: Final = timedelta(minutes=10)

Report = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Left:
    """A session that nobody sees any more. Of a long one the messages are still there, and `job` is deleting them."""

    is_long: bool = False
    job: JobView | None = None


async def leave(deps: ChatDeps, session_id: str, *, settle_s: float, enqueue: bool = True) -> Left:
    """Stop what runs and take the session away; without `enqueue` the caller clears a long one.

    Raises:
        SessionNotFoundError: No such session.
        SessionBusyError: Its turn did not end within `settle_s`; the session is left as it was.
    """
    deadline = time.monotonic() + settle_s
    asked: str | None = None
    while isinstance(found := await _leave_if_at_rest(deps, session_id, enqueue=enqueue), SessionRow):
        if time.monotonic() >= deadline:
            raise SessionBusyError(extra={"session": found.summary().wire()})
        if found.running_turn_id != asked:
            asked = found.running_turn_id
            await request_stop(deps, session_id)
        await asyncio.sleep(LOOK_S)
    if found.job is not None:
        deps.jobs.worker.wake()
    return found


async def _leave_if_at_rest(deps: ChatDeps, session_id: str, *, enqueue: bool) -> Left | SessionRow:
    """Take it away, or return the session that still runs a turn."""
    async with deps.outbox.transaction() as conn:
        row = await store.LOCK.first(conn, session_id)
        if row is None:
            if not await store.IS_LEAVING.value(conn, session_id):
                raise SessionNotFoundError
            return Left(is_long=True, job=await _enqueued(deps, conn, session_id, "") if enqueue else None)
        if row.running_turn_id is not None:
            return row
        event = SessionDeleted(aggregate_id=session_id, version=row.version + 1, session_id=session_id)
        await deps.outbox.add(conn, event)
        if await store.HOW_LONG.value(conn, session_id) <= LONG_MESSAGES:
            await _delete(conn, session_id)
            return Left()
        await store.LEAVE.run(conn, session_id)
        return Left(is_long=True, job=await _enqueued(deps, conn, session_id, row.title) if enqueue else None)


async def _enqueued(deps: ChatDeps, conn: Connection, session_id: str, title: str) -> JobView:
    named = f"Delete “{title}”" if title else "Delete a chat"
    return await deps.jobs.enqueue(
        conn, KIND, {"sessionId": session_id}, key=session_id, again=True, title=named, about=session_id
    )


async def _delete(conn: Connection, session_id: str) -> None:
    """Messages go with their thread; turns, intents and the audit of hooks with their session."""
    await delegates.DELETE_OF_SESSION.run(conn, session_id)
    await store.DELETE.run(conn, session_id)
    await threads.DELETE.run(conn, session_id)


async def clear(deps: ChatDeps, session_id: str, job: Job, report: Report) -> None:
    """Delete what is left of a leaving session, in pieces that are committed one by one; may be done again."""
    async with deps.pool.acquire() as conn:
        total = max(1, await store.HOW_LONG.value(conn, session_id))
    gone, piece = 0, PIECE_MESSAGES
    while piece == PIECE_MESSAGES:
        async with deps.pool.transaction() as conn:
            job.lease.check()
            piece = await threads.DELETE_NEWEST.run(conn, session_id, PIECE_MESSAGES)
        gone += piece
        await report(min(1.0, gone / total))
    piece = PIECE_THREADS
    while piece == PIECE_THREADS:
        async with deps.pool.transaction() as conn:
            job.lease.check()
            piece = await delegates.DELETE_SOME_OF_SESSION.run(conn, session_id, PIECE_THREADS)
    async with deps.pool.transaction() as conn:
        await job.lease.fence(conn)
        await _delete(conn, session_id)


async def remove_long(deps: ChatDeps, job: Job) -> None:
    """Carry out the job of one long session."""

    async def report(share: float) -> None:
        await job.report(share, f"{share:.0%} of its messages are deleted")

    await clear(deps, job.input["sessionId"], job, report)
    await tell_hooks(deps, job.input["sessionId"])


async def rescue(deps: ChatDeps) -> None:
    """Give every session that has been leaving for long a job, should its own have failed."""
    async with deps.outbox.transaction() as conn:
        found = await store.LEAVING.all(conn, RESCUED_AFTER)
        for session_id in found:
            await _enqueued(deps, conn, session_id, "")
    if found:
        deps.jobs.worker.wake()


async def tell_hooks(deps: ChatDeps, session_id: str) -> None:
    """Begin to tell the hooks of SessionEnd, if there are any; the session is gone whatever they do."""
    try:
        async with deps.pool.acquire() as conn:
            due = await hooks.ENABLED_FOR.all(conn, "SessionEnd")
    except UnavailableError as error:
        log.warning("hooks were not told of a deleted session", extra={"session": session_id, "reason": error.message})
        return
    if due:
        deps.session_ends.tell(RunHooks(deps.hooks, deps.hook_audit, due, session_id, ORCHESTRATOR))
