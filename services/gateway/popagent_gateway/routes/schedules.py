"""Schedules: what is done again and again, when, and what came of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.paging import Page
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.scheduler import (
    CreateSchedule,
    CronPreview,
    DeleteSchedule,
    ListScheduleRuns,
    ListSchedules,
    PreviewCron,
    RunSchedule,
    ScheduleChanges,
    ScheduleFields,
    ScheduleList,
    ScheduleRunList,
    ScheduleRunView,
    ScheduleView,
    UpdateSchedule,
)

router = APIRouter(prefix="/api/schedules", tags=["schedules"], route_class=JsonRoute)


@router.get("")
async def list_schedules(bus: Bus, query: Annotated[ListSchedules, Query()]) -> ScheduleList:
    """List schedules by name, all or those of one workspace."""
    return await bus.ask(query)


@router.post("", status_code=201)
async def create_schedule(bus: Bus, body: ScheduleFields, command_id: CommandId) -> ScheduleView:
    """Make a schedule; its rule is read in the time zone of the server."""
    return await bus.ask(CreateSchedule(command_id=command_id, fields=body))


@router.get("/preview")
async def preview(bus: Bus, query: Annotated[PreviewCron, Query()]) -> CronPreview:
    """Say what a rule means, and when it would fire next."""
    return await bus.ask(query)


@router.patch("/{id}")
async def update_schedule(bus: Bus, id: PathId, body: ScheduleChanges) -> ScheduleView:  # noqa: A002
    """Change a schedule; `enabled` pauses it and lets it go on."""
    return await bus.ask(UpdateSchedule(schedule_id=id, changes=body))


@router.delete("/{id}")
async def delete_schedule(bus: Bus, id: PathId) -> DeletedView:  # noqa: A002
    """Delete a schedule and its history; its tasks stay."""
    return await bus.ask(DeleteSchedule(schedule_id=id))


@router.post("/{id}/run", status_code=202)
async def run_schedule(bus: Bus, id: PathId, command_id: CommandId) -> ScheduleRunView:  # noqa: A002
    """Run it now, paused or not; its times stay as they are."""
    return await bus.ask(RunSchedule(schedule_id=id, command_id=command_id))


@router.get("/{id}/runs")
async def list_runs(bus: Bus, id: PathId, page: Annotated[Page, Query()]) -> ScheduleRunList:  # noqa: A002
    """List what came of its times, the newest first."""
    return await bus.ask(ListScheduleRuns(schedule_id=id, **page.model_dump()))
