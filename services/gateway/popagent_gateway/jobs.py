"""What answers 202: a job of some service, which is asked about by its id."""

from __future__ import annotations

from typing import Any, Final

from popagent_bus import Bus
from popagent_gateway.errors import JsonResponse
from popagent_proto.chat.jobs import GetChatJob, ListChatJobs
from popagent_proto.common import JobList, JobNotFoundError, JobQuery, JobsQuery, JobView
from popagent_proto.docs_indexer.imports import GetDocsJob, ListDocsJobs

ACCEPTED: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": JobView, "description": "It takes longer; `GET /api/jobs/{id}` says how far it is."}
}
# Every service with jobs has both.
OWNERS: Final[dict[str, tuple[type[JobQuery], type[JobsQuery]]]] = {
    "chat": (GetChatJob, ListChatJobs),
    "docs-indexer": (GetDocsJob, ListDocsJobs),
}


def accepted(job: JobView) -> JsonResponse:
    """Return the answer 202, which names the job in its location, too."""
    return JsonResponse(job.wire(), 202, {"location": f"/api/jobs/{job.id}"})


async def job_of(bus: Bus, job_id: str) -> JobView:
    """Ask the service that the id names.

    Raises:
        JobNotFoundError: It names none, or that one does not know it.
    """
    owner = OWNERS.get(job_id.partition("_")[0])
    if owner is None:
        raise JobNotFoundError
    return await bus.ask(owner[0](job_id=job_id))


async def all_jobs(bus: Bus) -> JobList:
    """Return the newest jobs of every service, those that are not over first."""
    found = [each for _, query in OWNERS.values() for each in (await bus.ask(query())).items]
    found.sort(key=lambda job: job.created_at, reverse=True)
    return JobList(items=sorted(found, key=lambda job: job.state in ("completed", "failed")))
