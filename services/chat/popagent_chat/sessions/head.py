"""Switch the branch that a session shows."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import store
from popagent_chat.sessions.handlers import lock_for_edit
from popagent_chat.sessions.view import view_of
from popagent_chat.threads import branches
from popagent_chat.threads import store as threads
from popagent_kit.errors import InvalidInputError
from popagent_proto.chat.sessions import SessionChanged, SessionView, SetHead

handlers = Handlers[ChatDeps]()


@handlers.answers(SetHead)
async def set_head(deps: ChatDeps, command: SetHead) -> SessionView:
    """Move the head to the newest message below the named one; a head that is there already changes nothing."""
    body, session_id = command.body, command.session_id
    async with deps.outbox.transaction() as conn:
        row = await lock_for_edit(conn, session_id, body.revision, needs_rest=True)
        head = await branches.NEWEST_BELOW.first(conn, session_id, body.message_id)
        if head is None:
            raise InvalidInputError("This names no stored message of this session.", field="messageId")
        if head != await threads.HEAD.first(conn, session_id):
            await threads.SET_HEAD.run(conn, session_id, head)
            row = await store.REVISE.one(conn, session_id)
            await deps.outbox.add(conn, SessionChanged(aggregate_id=row.id, version=row.version, session=row.summary()))
        return await view_of(conn, row)
