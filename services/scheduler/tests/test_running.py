"""Times that come become tasks: once each, however many schedulers look, and whatever is away meanwhile."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_kit.errors import InvalidInputError, RateLimitedError, UnavailableError
from popagent_kit.ids import new_id
from popagent_proto.scheduler import (
    DeleteSchedule,
    ListScheduleRuns,
    ListSchedules,
    RunSchedule,
    ScheduleChanges,
    ScheduleRunView,
    UpdateSchedule,
)
from popagent_testing.suite_bus import until
from services.scheduler.tests.conftest import Make, Start
from services.scheduler.tests.running import Others


async def let_come(pool: Pool, schedule_id: str, ago: timedelta = timedelta(seconds=1)) -> datetime:
    """Set the next time of a schedule into the past."""
    planned: datetime = await pool.fetchval(
        "update schedules set next_run_at = clock_timestamp() - $2::interval where id = $1 returning next_run_at",
        schedule_id,
        ago,
    )
    return planned


async def runs_of(gateway: Bus, schedule_id: str) -> list[ScheduleRunView]:
    return (await gateway.ask(ListScheduleRuns(schedule_id=schedule_id))).items


async def settled(gateway: Bus, schedule_id: str, count: int = 1) -> list[ScheduleRunView]:
    async def done() -> bool:
        runs = await runs_of(gateway, schedule_id)
        return len(runs) >= count and all(run.outcome != "due" for run in runs)

    await until(done)
    return await runs_of(gateway, schedule_id)


async def test_a_time_that_comes_becomes_a_task_with_all_that_the_schedule_says(
    gateway: Bus, make: Make, pool: Pool, others: Others
) -> None:
    made = await make(max_attempts=5, agent_id="researcher", model="big-one")
    planned = await let_come(pool, made.id)

    (run,) = await settled(gateway, made.id)

    (task,) = others.made.values()
    assert (run.outcome, run.task_id, run.asked) == ("started", task.command_id, False)
    assert abs(run.planned_at - planned) < timedelta(milliseconds=1)
    assert (task.source, task.schedule_id, task.unless_scheduled) == ("user", made.id, True)
    assert task.body.wire() | {"priority": 0} == {
        "prompt": "Write the report.",
        "workspaceId": "default",
        "agentId": "researcher",
        "model": "big-one",
        "maxAttempts": 5,
        "priority": 0,
    }
    after = (await gateway.ask(ListSchedules())).items[0]
    assert after.last_run == run
    assert after.next_run_at is not None
    assert after.next_run_at > datetime.now(UTC)
    assert after.revision == made.revision


async def test_several_schedulers_make_one_task_of_each_time(
    gateway: Bus, make: Make, pool: Pool, others: Others, start: Start
) -> None:
    await asyncio.gather(*(start() for _ in range(3)))
    made = [await make(name=f"Report {number}") for number in range(10)]

    await asyncio.gather(*(let_come(pool, each.id) for each in made))
    for each in made:
        await settled(gateway, each.id)

    assert len(others.made) == 10
    assert {task.schedule_id for task in others.made.values()} == {each.id for each in made}


async def test_a_task_runner_that_is_away_is_asked_until_it_answers_and_makes_one_task(
    gateway: Bus, make: Make, pool: Pool, others: Others
) -> None:
    others.trouble = UnavailableError("Not now.", retry_after_s=0.1)
    made = await make()
    await let_come(pool, made.id)
    await until(lambda: others.asked >= 3)
    waiting = (await runs_of(gateway, made.id))[0]

    others.trouble = None
    (run,) = await settled(gateway, made.id)

    assert (waiting.outcome, waiting.note) == ("due", "Not now.")
    assert (run.outcome, run.note) == ("started", "")
    assert len(others.made) == 1


async def test_a_full_queue_is_waited_for(gateway: Bus, make: Make, pool: Pool, others: Others) -> None:
    others.trouble = RateLimitedError("Full.", retry_after_s=0.1)
    made = await make()
    await let_come(pool, made.id)
    await until(lambda: others.asked >= 2)
    others.trouble = None

    (run,) = await settled(gateway, made.id)

    assert run.outcome == "started"


async def test_what_no_task_can_be_made_of_is_written_down_and_the_schedule_goes_on(
    gateway: Bus, make: Make, pool: Pool, others: Others
) -> None:
    others.trouble = InvalidInputError("There is no workspace with this id.", field="workspaceId")
    made = await make()
    await let_come(pool, made.id)

    (run,) = await settled(gateway, made.id)

    assert (run.outcome, run.note, run.task_id) == ("refused", "There is no workspace with this id.", None)
    assert (await gateway.ask(ListSchedules())).items[0].next_run_at is not None


async def test_a_time_is_skipped_while_an_earlier_one_runs_unless_that_is_not_wanted(
    gateway: Bus, make: Make, pool: Pool, others: Others
) -> None:
    others.busy = True
    careful, eager = await make(name="Careful"), await make(name="Eager", skip_if_running=False)
    for each in (careful, eager):
        await let_come(pool, each.id)

    (skipped,), (started,) = await settled(gateway, careful.id), await settled(gateway, eager.id)

    assert (skipped.outcome, skipped.note) == ("skipped", "Task 7 of an earlier time still runs.")
    assert started.outcome == "started"


async def test_what_passed_while_nothing_ran_is_made_up_for_once_or_told(
    gateway: Bus, make: Make, pool: Pool, others: Others
) -> None:
    made = await make(name="Often", cron="*/5 * * * *", catch_up_minutes=10)
    rare = await make(name="Rare", cron="0 0 1 1 *", catch_up_minutes=10)
    await let_come(pool, made.id, timedelta(hours=2))
    await let_come(pool, rare.id, timedelta(minutes=11))

    runs, (missed,) = await settled(gateway, made.id, 2), await settled(gateway, rare.id)

    assert [run.outcome for run in runs] == ["started", "missed"]
    assert "others after it" in runs[1].note
    assert missed.outcome == "missed"
    assert len(others.made) == 1


async def test_asked_for_now_it_runs_once_for_one_command_paused_or_not(
    gateway: Bus, make: Make, others: Others
) -> None:
    others.busy = True
    made = await make(enabled=False)
    command = RunSchedule(command_id=new_id(), schedule_id=made.id)

    first, second = await gateway.ask(command), await gateway.ask(command)
    (run,) = await settled(gateway, made.id)

    assert (first.task_id, second.task_id, run.task_id) == (command.command_id,) * 3
    assert (run.outcome, run.asked) == ("started", True)
    assert len(others.made) == 1
    assert (await gateway.ask(ListSchedules())).items[0].next_run_at is None


async def test_nothing_runs_of_what_is_paused_or_gone(gateway: Bus, make: Make, pool: Pool, others: Others) -> None:
    paused, gone, kept = await make(name="A"), await make(name="B"), await make(name="C")
    await gateway.ask(UpdateSchedule(schedule_id=paused.id, changes=ScheduleChanges(revision=0, enabled=False)))
    await gateway.ask(DeleteSchedule(schedule_id=gone.id))

    await let_come(pool, kept.id)
    await settled(gateway, kept.id)

    assert [task.schedule_id for task in others.made.values()] == [kept.id]


async def test_the_history_comes_page_by_page_the_newest_first(gateway: Bus, make: Make, pool: Pool) -> None:
    made = await make(enabled=False)
    await pool.execute(
        "insert into schedule_runs (schedule_id, planned_at, task_id, asked, outcome) "
        "select $1, timestamptz '2026-01-01' + n * interval '1 minute', 't' || n, false, 'started' "
        "from generate_series(1, 25) n",
        made.id,
    )

    seen: list[str | None] = []
    cursor = None
    while True:
        page = await gateway.ask(ListScheduleRuns(schedule_id=made.id, limit=10, cursor=cursor))
        seen += [run.task_id for run in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == [f"t{number}" for number in range(25, 0, -1)]


async def test_what_is_asked_for_again_and_again_while_it_is_handed_over_neither_waits_nor_doubles(
    gateway: Bus, make: Make, others: Others, start: Start
) -> None:
    await start()
    made = await make(enabled=False)
    commands = [RunSchedule(command_id=new_id(), schedule_id=made.id) for _ in range(12)]

    for _ in range(4):
        await asyncio.gather(*(gateway.ask(command) for command in commands))
    await settled(gateway, made.id, len(commands))

    assert others.made.keys() == {command.command_id for command in commands}
