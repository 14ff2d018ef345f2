"""Delete every session of a workspace for good, each as one would be deleted alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import store
from popagent_chat.sessions.handlers import SessionBusyError, SessionNotFoundError
from popagent_chat.sessions.removing import Report, clear, leave, tell_hooks
from popagent_chat.sessions.store import SessionOfWorkspace
from popagent_chat.workspaces import store as workspaces
from popagent_chat.workspaces.handlers import WorkspaceNotFoundError
from popagent_proto.chat.workspaces import DeleteWorkspaceSessions
from popagent_proto.common import JobView
from popagent_rows.jobs import Job

handlers = Handlers[ChatDeps]()

KIND: Final = "workspaces-delete-sessions"
SETTLE_S: Final = 10.0
PAGE: Final = 100
# An event tells of them, too, and has 8 kB at most.
MOST_KEPT_TOLD: Final = 15


@handlers.answers(DeleteWorkspaceSessions)
async def delete_all(deps: ChatDeps, command: DeleteWorkspaceSessions) -> JobView:
    """Store the job; what is begun in the workspace from now on is not its business."""
    async with deps.outbox.transaction() as conn:
        workspace = await workspaces.HOLD.first(conn, command.workspace_id)
        if workspace is None:
            raise WorkspaceNotFoundError
        until = await store.COUNT_NOW.one(conn, workspace.id)
        job = await deps.jobs.enqueue(
            conn,
            KIND,
            {"workspaceId": workspace.id, "until": until.now.isoformat(), "total": until.total},
            key=workspace.id,
            again=True,
            title=f"Delete all chats of “{workspace.name}”",
            about=workspace.id,
        )
    deps.jobs.worker.wake()
    return job


async def delete_of_workspace(deps: ChatDeps, job: Job) -> dict[str, Any]:
    """Carry out the job; after a kill it goes on with what is left."""
    workspace_id, until = job.input["workspaceId"], datetime.fromisoformat(job.input["until"])
    async with deps.pool.acquire() as conn:
        left = await store.COUNT_UNTIL.value(conn, workspace_id, until)
    total = max(left, job.input["total"])
    kept: list[dict[str, str]] = []
    after = ""
    while page := await _page(deps, workspace_id, until, after):
        for each in page:

            async def report(share: float, left: int = left) -> None:
                done = total - left
                await job.report((done + share) / total, f"{done:,} of {total:,} chats are deleted")

            await report(0.0)
            job.lease.check()
            reason = await _remove(deps, each, job, report)
            if reason is not None:
                kept.append({"id": each.id, "title": each.title, "reason": reason})
            left -= 1
        after = page[-1].id
    return {"deleted": total - len(kept), "keptCount": len(kept), "kept": kept[:MOST_KEPT_TOLD]}


async def _page(deps: ChatDeps, workspace_id: str, until: datetime, after: str) -> list[SessionOfWorkspace]:
    async with deps.pool.acquire() as conn:
        return await store.OF_WORKSPACE.all(conn, workspace_id, until, after, PAGE)


async def _remove(deps: ChatDeps, session: SessionOfWorkspace, job: Job, report: Report) -> str | None:
    """Delete one; returns why it was kept."""
    try:
        left = await leave(deps, session.id, settle_s=SETTLE_S, enqueue=False)
    except SessionBusyError as error:
        return error.message
    except SessionNotFoundError:
        return None  # somebody else deleted it
    if left.is_long:
        await clear(deps, session.id, job, report)
    await deps.session_ends.room()
    await tell_hooks(deps, session.id)
    return None
