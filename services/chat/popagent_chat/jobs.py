"""The jobs of chat: who carries out which kind, and how far they are."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import delete_all, removing
from popagent_chat.workspaces import cloning
from popagent_proto.chat.jobs import GetChatJob, JobChanged, ListChatJobs
from popagent_proto.common import JobList, JobNotFoundError, JobView
from popagent_rows.jobs import Job, JobNews
from popagent_rows.outbox import Outbox

handlers = Handlers[ChatDeps]()


@handlers.answers(GetChatJob)
async def get_job(deps: ChatDeps, query: GetChatJob) -> JobView:
    """Return it as it is stored."""
    async with deps.pool.acquire() as conn:
        found = await deps.jobs.get(conn, query.job_id)
    if found is None:
        raise JobNotFoundError
    return found


@handlers.answers(ListChatJobs)
async def list_jobs(deps: ChatDeps, _: ListChatJobs) -> JobList:
    """Return the newest."""
    async with deps.pool.acquire() as conn:
        return JobList(items=await deps.jobs.newest(conn))


def news(outbox: Outbox) -> JobNews:
    """Return how followers hear of the jobs of chat."""
    return JobNews(outbox, lambda job, version: JobChanged(aggregate_id=job.id, version=version, job=job))


def carry_out(deps: ChatDeps) -> None:
    """Register who carries out each kind."""

    @deps.jobs.handles(delete_all.KIND)
    async def delete_sessions(job: Job) -> dict[str, object]:
        return await delete_all.delete_of_workspace(deps, job)

    @deps.jobs.handles(removing.KIND)
    async def remove_session(job: Job) -> None:
        await removing.remove_long(deps, job)

    @deps.jobs.handles(cloning.KIND)
    async def clone(job: Job) -> dict[str, object]:
        return await cloning.clone(deps, job)
