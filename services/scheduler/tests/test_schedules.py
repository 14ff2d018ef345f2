"""Schedules are made, changed, listed and deleted; what cannot be is refused with its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import popagent_scheduler
from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_db.query import prepare_all
from popagent_kit.errors import AppError, InvalidInputError, KeyUsedError, NotFoundError, RevisionConflictError
from popagent_kit.ids import new_id
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
    SystemScheduleError,
    TooManySchedulesError,
    UpdateSchedule,
)
from services.scheduler.tests.conftest import Make


async def test_every_statement_fits_the_migrated_schema(pool: Pool) -> None:
    async with pool.acquire() as conn:
        assert await prepare_all(conn, popagent_scheduler) > 15


async def test_a_new_schedule_knows_its_next_time_and_the_zone_of_the_server(gateway: Bus, make: Make) -> None:
    made = await make(cron="30 7 * * MON-FRI", max_attempts=5)

    listed = await gateway.ask(ListSchedules())

    assert listed.items == [made]
    assert (made.source, made.workspace_id, made.max_attempts, made.revision) == ("user", "default", 5, 0)
    assert (made.cron_words, made.timezone) == ("At 07:30 on Monday through Friday", "Europe/Berlin")
    assert made.next_run_at is not None
    assert timedelta(0) < made.next_run_at - datetime.now(UTC) < timedelta(days=4)


async def test_the_same_command_twice_is_one_schedule(gateway: Bus) -> None:
    command = CreateSchedule(command_id=new_id(), fields=ScheduleFields(name="A", prompt="Do it.", cron="@daily"))

    first, second = await gateway.ask(command), await gateway.ask(command)

    assert first == second
    assert len((await gateway.ask(ListSchedules())).items) == 1


async def test_the_id_of_a_schedule_is_not_taken_for_another_one(gateway: Bus) -> None:
    given = {"name": "A", "prompt": "Do it.", "cron": "@daily"}
    made = await gateway.ask(CreateSchedule(command_id=new_id(), fields=ScheduleFields.model_validate(given)))

    for change in ({"name": "B"}, {"cron": "@hourly"}, {"maxAttempts": 5}):
        with pytest.raises(KeyUsedError):
            await gateway.ask(CreateSchedule(command_id=made.id, fields=ScheduleFields.model_validate(given | change)))

    assert (await gateway.ask(ListSchedules())).items == [made]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "@every 0s"}, "cron"),
        ({"cron": "*," * 5_000}, "cron"),
        ({"workspace_id": "elsewhere"}, "workspaceId"),
        ({"agent_id": "nobody"}, "agentId"),
    ],
)
async def test_what_cannot_be_is_refused_with_its_field(make: Make, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await make(**fields)

    assert refused.value.field == field


async def test_two_who_change_one_schedule_lose_nothing(gateway: Bus, make: Make) -> None:
    made = await make()
    first = UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=0, name="Theirs"))
    second = UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=0, prompt="Mine."))

    await gateway.ask(first)
    with pytest.raises(RevisionConflictError) as refused:
        await gateway.ask(second)

    assert refused.value.extra["schedule"]["name"] == "Theirs"
    assert (await gateway.ask(ListSchedules())).items[0].prompt == "Write the report."


async def test_a_pause_has_no_next_time_and_going_on_begins_from_now(gateway: Bus, make: Make) -> None:
    made = await make(cron="* * * * *")

    paused = await gateway.ask(UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=0, enabled=False)))
    again = await gateway.ask(UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=1, enabled=True)))

    assert paused.next_run_at is None
    assert again.next_run_at is not None
    assert again.next_run_at > datetime.now(UTC) - timedelta(seconds=1)


async def test_a_change_of_words_leaves_the_next_time_and_one_of_the_rule_plans_anew(
    gateway: Bus, make: Make, pool: Pool
) -> None:
    made = await make()

    renamed = await gateway.ask(UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=0, name="B")))
    moved = await gateway.ask(
        UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=1, cron="@monthly", max_attempts=7))
    )

    assert renamed.next_run_at == made.next_run_at
    assert (moved.cron, moved.max_attempts, renamed.max_attempts) == ("0 0 1 * *", 7, 3)
    assert moved.next_run_at is not None
    assert made.next_run_at is None or moved.next_run_at <= made.next_run_at


async def test_null_is_refused_where_it_means_nothing(gateway: Bus, make: Make) -> None:
    made = await make(model=None)
    changes = ScheduleChanges.model_validate({"revision": 0, "maxAttempts": None})

    with pytest.raises(InvalidInputError) as refused:
        await gateway.ask(UpdateSchedule(schedule_id=made.id, changes=changes))

    assert refused.value.field == "maxAttempts"


async def test_a_schedule_of_the_system_can_be_paused_and_nothing_else(gateway: Bus, make: Make, pool: Pool) -> None:
    made = await make()
    await pool.execute("update schedules set source = 'self-update', next_run_at = null where id = $1", made.id)

    for refused in (
        UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=0, cron="@daily")),
        DeleteSchedule(schedule_id=made.id),
        RunSchedule(command_id=new_id(), schedule_id=made.id),
    ):
        with pytest.raises(SystemScheduleError):
            await gateway.ask(refused)
    paused = await gateway.ask(UpdateSchedule(schedule_id=made.id, changes=ScheduleChanges(revision=0, enabled=False)))

    assert not paused.enabled


async def test_one_workspace_has_one_schedule_of_the_system(make: Make, pool: Pool) -> None:
    first, second = await make(name="One"), await make(name="Two")
    change = "update schedules set source = 'self-update', next_run_at = null where id = $1"
    await pool.execute(change, first.id)

    with pytest.raises(Exception, match="schedules_self_update"):
        await pool.execute(change, second.id)


async def test_there_is_a_bound(gateway: Bus, make: Make, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_scheduler.handlers.MOST_SCHEDULES", 2)
    await make(name="One")
    await make(name="Two")

    with pytest.raises(TooManySchedulesError):
        await make(name="Three")


async def test_a_rule_is_told_before_it_is_saved(gateway: Bus) -> None:
    shown = await gateway.ask(PreviewCron(cron="@daily"))

    assert isinstance(shown, CronPreview)
    assert (shown.cron, shown.words, shown.timezone) == ("0 0 * * *", "At 00:00 every day", "Europe/Berlin")
    assert len(shown.next) == 5
    assert shown.next == sorted(shown.next)


async def test_what_is_not_there_is_said(gateway: Bus) -> None:
    for asked in (
        UpdateSchedule(schedule_id="none", changes=ScheduleChanges(revision=0)),
        DeleteSchedule(schedule_id="none"),
        RunSchedule(command_id=new_id(), schedule_id="none"),
        ListScheduleRuns(schedule_id="none"),
    ):
        with pytest.raises(NotFoundError):
            await gateway.ask(asked)


async def test_a_cursor_of_somebody_else_is_refused(gateway: Bus, make: Make) -> None:
    made = await make()

    for cursor in ("x", "2026-01-01", "99999-01-01T00:00:00+00:00"):
        with pytest.raises(AppError) as refused:
            await gateway.ask(ListScheduleRuns(schedule_id=made.id, cursor=cursor))
        assert refused.value.field == "cursor"
