"""A workspace that is about to be deleted takes no new schedule, and a time that comes meanwhile is not lost."""

from __future__ import annotations

import pytest

from popagent_bus import Bus
from popagent_proto.common import WorkspaceClosingError
from popagent_proto.scheduler import CloseToSchedules, ListScheduleRuns, OpenToSchedules, RunSchedule
from popagent_testing.suite_bus import ConnectAs, until
from services.scheduler.tests.conftest import Make
from services.scheduler.tests.running import Others


async def test_a_closed_workspace_takes_no_schedule_until_it_is_opened(
    gateway: Bus, make: Make, connect_as: ConnectAs
) -> None:
    door = await connect_as("chat")
    await make(name="Kept")

    closed = await door.ask(CloseToSchedules(workspace_id="default", closed_by="me"))
    with pytest.raises(WorkspaceClosingError):
        await make(name="Late")
    await door.ask(OpenToSchedules(workspace_id="default", closed_by="me"))
    later = await make(name="Later")

    assert (closed.count, later.name) == (1, "Later")


async def test_a_time_is_not_lost_because_its_workspace_was_about_to_be_deleted(
    gateway: Bus, make: Make, others: Others
) -> None:
    schedule = await make()
    others.trouble = WorkspaceClosingError()

    async def asked() -> bool:
        return others.asked > 0

    await gateway.ask(RunSchedule(command_id="r1", schedule_id=schedule.id))
    await until(asked)
    [waiting] = (await gateway.ask(ListScheduleRuns(schedule_id=schedule.id))).items
    others.trouble = None

    async def made() -> bool:
        return bool(others.made)

    await until(made)
    assert waiting.outcome == "due"
