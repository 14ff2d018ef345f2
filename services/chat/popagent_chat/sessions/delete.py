"""Delete a session for good."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions.removing import leave, tell_hooks
from popagent_proto.chat.sessions import DeleteSession, SessionDeletedView

handlers = Handlers[ChatDeps]()

# How long a running turn gets to settle; the rest of the time for the answer (10 s) is for the database.
SETTLE_S: Final = 6.0


@handlers.answers(DeleteSession)
async def delete_session(deps: ChatDeps, command: DeleteSession) -> SessionDeletedView:
    """Delete; a session that keeps running is left as it was and answers 409."""
    left = await leave(deps, command.session_id, settle_s=SETTLE_S)
    if not left.is_long:
        await tell_hooks(deps, command.session_id)
    return SessionDeletedView(id=command.session_id, job=left.job)
