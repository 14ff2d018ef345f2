"""Jobs: what takes longer than a request, and how far it is."""

from __future__ import annotations

from fastapi import APIRouter

from popagent_gateway.asking import Bus, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.jobs import all_jobs, job_of
from popagent_proto.common import JobList, JobView

router = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=JsonRoute)


@router.get("")
async def list_jobs(bus: Bus) -> JobList:
    """List the newest jobs, those that are not over first."""
    return await all_jobs(bus)


@router.get("/{id}")
async def get_job(bus: Bus, id: PathId) -> JobView:  # noqa: A002
    """Say how far a job is; `GET /api/events?topics=jobs` tells of every step."""
    return await job_of(bus, id)
