"""Delete a session for good: stop what runs, then thread, turns and session go together; hooks are told after it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from popagent_bus import Handlers
from popagent_chat.agents.store import ORCHESTRATOR
from popagent_chat.deps import ChatDeps
from popagent_chat.hooks import store as hooks
from popagent_chat.hooks.running import RunHooks
from popagent_chat.sessions import store
from popagent_chat.sessions.handlers import SessionBusyError, SessionNotFoundError
from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import store as threads
from popagent_chat.turns import delegates
from popagent_chat.turns.stop import request_stop
from popagent_kit.errors import UnavailableError
from popagent_proto.chat.sessions import DeletedView, DeleteSession, SessionDeleted

log = logging.getLogger(__name__)

handlers = Handlers[ChatDeps]()

# How long a running turn gets to settle; the rest of the time for the answer (10 s) is for the database.
SETTLE_S: Final = 6.0
LOOK_S: Final = 0.05


@handlers.answers(DeleteSession)
async def delete_session(deps: ChatDeps, command: DeleteSession) -> DeletedView:
    """Delete; a session that keeps running is left as it was and answers 409."""
    deadline = time.monotonic() + SETTLE_S
    asked: str | None = None
    while (busy := await _delete_if_at_rest(deps, command.session_id)) is not None:
        if time.monotonic() >= deadline:
            raise SessionBusyError(extra={"session": busy.summary().wire()})
        if busy.running_turn_id != asked:
            asked = busy.running_turn_id
            await request_stop(deps, command.session_id)
        await asyncio.sleep(LOOK_S)
    await _tell_hooks(deps, command.session_id)
    return DeletedView(id=command.session_id)


async def _delete_if_at_rest(deps: ChatDeps, session_id: str) -> SessionRow | None:
    """Delete and return None, or return the session that still runs a turn."""
    async with deps.outbox.transaction() as conn:
        row = await store.LOCK.first(conn, session_id)
        if row is None:
            raise SessionNotFoundError
        if row.running_turn_id is not None:
            return row
        # Messages go with their thread, turns and intents with their session.
        await delegates.DELETE_OF_SESSION.run(conn, session_id)
        await store.DELETE.run(conn, session_id)
        await threads.DELETE.run(conn, session_id)
        event = SessionDeleted(aggregate_id=session_id, version=row.version + 1, session_id=session_id)
        await deps.outbox.add(conn, event)
    return None


async def _tell_hooks(deps: ChatDeps, session_id: str) -> None:
    """Begin to tell the hooks of SessionEnd, if there are any; the session is gone whatever they do."""
    try:
        async with deps.pool.acquire() as conn:
            due = await hooks.ENABLED_FOR.all(conn, "SessionEnd")
    except UnavailableError as error:
        log.warning("hooks were not told of a deleted session", extra={"session": session_id, "reason": error.message})
        return
    if due:
        deps.session_ends.tell(RunHooks(deps.hooks, deps.hook_audit, due, session_id, ORCHESTRATOR))
