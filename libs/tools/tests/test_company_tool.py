"""The tool that tells how the company is doing: what it tells, what it leaves out, and when an owner is away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from libs.tools.tests.runs import call, run_in
from popagent_agent.company import Company
from popagent_agent.run_context import RunContext
from popagent_kit.clock import now
from popagent_kit.errors import UnavailableError
from popagent_models.profile import ModelProfile
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_proto.scheduler import ListSchedules, ScheduleList, ScheduleRunView, ScheduleView
from popagent_proto.task_runner.tasks import ListTasks, TaskList, TaskState, TaskSummary
from popagent_sandbox.contained import ContainedFolder
from popagent_tools.company import MISSING, MOST_BYTES

NOW = now()
HOUR = timedelta(hours=1)


@dataclass
class Owners:
    """Workspaces, tasks and schedules, kept as their owners keep them."""

    tasks: list[TaskSummary] = field(default_factory=list)
    schedules: list[ScheduleView] = field(default_factory=list)
    away: frozenset[str] = frozenset()

    def company(self) -> Company:
        return Company(self.list_workspaces, self.list_tasks, self.list_schedules)

    async def list_workspaces(self, most: int) -> Sequence[WorkspaceView]:
        self._refuse("workspaces")
        return [WorkspaceView(id="w1", name="Marsh", path="marsh", is_default=True, created_at=NOW, revision=0)][:most]

    async def list_tasks(self, query: ListTasks) -> TaskList:
        self._refuse("tasks")
        found = [task for task in self.tasks if query.state is None or task.state in query.state]
        return TaskList(items=found[: query.limit])

    async def list_schedules(self, _: ListSchedules) -> ScheduleList:
        self._refuse("schedules")
        return ScheduleList(items=self.schedules, timezone="UTC")

    def _refuse(self, name: str) -> None:
        if name in self.away:
            raise UnavailableError("It does not answer.")


def task(task_id: str, state: TaskState, **more: object) -> TaskSummary:
    fields = {
        "id": task_id,
        "title": f"Title of {task_id}",
        "state": state,
        "source": "user",
        "workspace_id": "w1",
        "workflow": False,
        "agent_id": None,
        "model": None,
        "session_id": None,
        "schedule_id": None,
        "remediates": None,
        "priority": 0,
        "attempt_count": 1,
        "max_attempts": 3,
        "next_attempt_at": None,
        "last_error_class": None,
        "last_error": None,
        "dead_lettered_at": None,
        "interrupted_at": None,
        "turn_id": None,
        "trace_id": None,
        "excerpt": "",
        "version": 1,
        "created_at": NOW - HOUR,
        "started_at": NOW - HOUR / 3_600,
        "ended_at": None if state in ("queued", "running", "cancelling") else NOW - HOUR / 2,
    }
    return TaskSummary.model_validate(fields | more)


def schedule(name: str, *, enabled: bool = True) -> ScheduleView:
    run = ScheduleRunView(schedule_id=name, planned_at=NOW, asked=False, outcome="started", note="", task_id="t9")
    return ScheduleView(
        id=name,
        source="user",
        workspace_id="w1",
        name=name,
        prompt="Count.",
        agent_id=None,
        model=None,
        cron="@daily",
        cron_words="Every day at midnight",
        timezone="UTC",
        max_attempts=3,
        catch_up_minutes=10,
        skip_if_running=True,
        enabled=enabled,
        next_run_at=NOW if enabled else None,
        last_run=run if enabled else None,
        revision=0,
        created_at=NOW,
        updated_at=NOW,
    )


def run_of(owners: Owners, folder: Path, tokens: int = 16_000) -> RunContext:
    with ContainedFolder(folder) as opened:
        model = ModelProfile(262_144, 128, tokens, 120.0)
        return replace(run_in(opened, "read-only"), company=owners.company(), model=model)


async def told(owners: Owners, folder: Path, tokens: int = 16_000, **arguments: object) -> str:
    outcome = await call(run_of(owners, folder, tokens), "companyStatus", **arguments)
    assert not outcome.error, outcome.text
    return outcome.text


async def test_it_tells_of_everything_that_there_is(tmp_path: Path) -> None:
    owners = Owners(
        tasks=[
            task("t1", "completed", excerpt="Seven herons."),
            task("t2", "failed", last_error_class="timeout", last_error="It took too long."),
            task("t3", "running", started_at=now()),
            task("t4", "running", started_at=NOW - 99 * HOUR),
            task("t5", "cancelling", interrupted_at=NOW),
            task("t6", "dead-letter", ended_at=NOW - 400 * HOUR),
            task("t7", "queued", started_at=None),
            task("t8", "completed", ended_at=NOW - 30 * HOUR, excerpt="Old news."),
        ],
        schedules=[schedule("Daily"), schedule("Nightly", enabled=False)],
    )

    text = await told(owners, tmp_path)

    attention = section(text, "Needs attention")
    assert [line.split(":")[0] for line in attention[1:]] == [
        "- dead-letter",
        "- failed",
        "- does not end though it was told to",
        "- running for longer than a task may",
        "- schedule is paused",
    ]
    assert "timeout: It took too long." in attention[2]
    assert [line.split(":")[0][:9] for line in section(text, "Running and waiting")[1:]] == [
        "- running",
        "- running",
        "- cancell",
        "- queued",
    ]
    assert "next " in section(text, "Schedules")[1]
    assert section(text, "Schedules")[2].endswith("paused; never ran")
    assert "“Marsh” (w1), folder marsh, the default one" in section(text, "Workspaces")[1]
    ended = section(text, "Tasks that ended in the last 24 h (1 completed, 1 failed)")
    assert ended[1].endswith("(task t1 in w1): Seven herons.")
    assert "Old news" not in text
    assert "Old news" in await told(owners, tmp_path, hours=168)
    assert text.endswith(MISSING)


def section(text: str, title: str) -> list[str]:
    [found] = [part for part in text.split("\n\n") if part.startswith(title)]
    return found.splitlines()


@pytest.mark.parametrize(("tokens", "bytes_"), [(16_000, MOST_BYTES), (600, 1_700), (256, 1_000)])
async def test_it_keeps_within_what_the_model_reads_and_says_what_it_left_out(
    tmp_path: Path, tokens: int, bytes_: int
) -> None:
    owners = Owners(
        tasks=[task(f"{state}-{number}", state, excerpt="ä" * 500) for state in STATES for number in range(100)],
        schedules=[schedule(f"s{number}", enabled=False) for number in range(100)],
    )

    text = await told(owners, tmp_path, tokens)

    assert len(text.encode()) <= bytes_
    assert text.count(" more)") == 4
    assert text.endswith(MISSING)


STATES: tuple[TaskState, ...] = ("running", "failed", "completed")


async def test_an_owner_that_is_away_costs_its_part_alone(tmp_path: Path) -> None:
    owners = Owners(schedules=[schedule("Daily")], away=frozenset({"tasks", "workspaces"}))

    text = await told(owners, tmp_path)

    assert "Needs attention: cannot be read now. It does not answer." in text
    assert "Workspaces: cannot be read now." in text
    assert "Schedules: 1\n" in text


async def test_where_nothing_can_be_asked_it_says_so(tmp_path: Path) -> None:
    outcome = await call(replace(run_of(Owners(), tmp_path), company=None), "companyStatus")

    assert outcome.error
    assert "cannot be asked" in outcome.text


@pytest.mark.parametrize("hours", [0, 169])
async def test_a_window_is_a_week_at_most(tmp_path: Path, hours: int) -> None:
    assert (await call(run_of(Owners(), tmp_path), "companyStatus", hours=hours)).error
