"""What an export is made of: an outline of the shown branch, and its pages one by one."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_chat.agents import store as agents
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import store
from popagent_chat.sessions.handlers import SessionNotFoundError
from popagent_chat.sessions.view import ui_of
from popagent_chat.threads import branches
from popagent_chat.threads import store as threads
from popagent_chat.workspaces import store as workspaces
from popagent_kit.errors import NotFoundError
from popagent_proto.chat.agents import ORCHESTRATOR
from popagent_proto.chat.sessions import BranchMessages, OutlineSession, ReadBranch, SessionOutline

handlers = Handlers[ChatDeps]()

PAGE_MESSAGES: Final = 100
PAGE_BYTES: Final = 400_000
# A message of NATS has 8 MiB; whatever answer a model may write fits whole.
MESSAGE_BYTES: Final = 7_000_000
# A page was measured when it was outlined.
UNBOUNDED: Final = 2**62


class BranchGoneError(NotFoundError):
    """This session was deleted while it was read."""


@handlers.answers(OutlineSession)
async def outline_session(deps: ChatDeps, query: OutlineSession) -> SessionOutline:
    """Return the pages of the branch as it is now; what they hold never changes."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        row = await store.GET.first(conn, query.session_id)
        if row is None:
            raise SessionNotFoundError
        head = await threads.HEAD.first(conn, row.id)
        pages = await branches.OUTLINE.all(conn, row.id, head, PAGE_MESSAGES, PAGE_BYTES)
        workspace = await workspaces.GET.one(conn, row.workspace_id)
        agent = await agents.GET.first(conn, ORCHESTRATOR)
    return SessionOutline(
        session=row.summary(),
        workspace=workspace.name,
        agent=ORCHESTRATOR if agent is None else agent.name,
        pages=pages,
    )


@handlers.answers(ReadBranch)
async def read_branch(deps: ChatDeps, query: ReadBranch) -> BranchMessages:
    """Return one page of an outline."""
    page = query.page
    async with deps.pool.acquire() as conn:
        found = await threads.BRANCH.all(conn, query.session_id, page.last_id, page.count, UNBOUNDED)
    if len(found) < page.count:
        raise BranchGoneError
    return BranchMessages(messages=[ui_of(message, None, MESSAGE_BYTES) for message in found])
