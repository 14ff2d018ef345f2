"""Schedules: what is done again and again, when, and what came of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.errors import ConflictError, NotFoundError
from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire
from popagent_proto.chat.models import ModelId
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.common import OpenedView, ReferencesView
from popagent_proto.task_runner.tasks import DEFAULT_ATTEMPTS, MOST_ATTEMPTS, Prompt, TaskSource

MOST_SCHEDULES: Final = 200
# In minutes; a week.
LONGEST_CATCH_UP: Final = 10_080
PREVIEWED: Final = 5

RunOutcome = Literal["due", "started", "skipped", "missed", "refused"]

ScheduleName = Annotated[Line, Field(min_length=1, max_length=120)]
Cron = Annotated[
    Text,
    Field(
        max_length=20_000,  # what is longer than a rule may be is refused in words
        description="Five fields (minute, hour, day of the month, month, day of the week) or @hourly, @daily, "
        "@weekly, @monthly, @yearly, in the time zone of the server.",
    ),
]
Attempts = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS, description="Of each task that comes of it.")]
CatchUp = Annotated[
    int,
    Field(
        ge=0,
        le=LONGEST_CATCH_UP,
        description="Minutes: a time that passed while nothing ran is made up for once when it is not longer ago.",
    ),
]
SkipIfRunning = Annotated[
    bool, Field(description="A time is skipped while a task of an earlier one still waits or runs.")
]


class ScheduleRunView(View):
    """What came of one planned time: a task, or why there is none."""

    schedule_id: Id
    planned_at: Moment
    asked: bool = Field(description="Somebody asked for it; it was no time of the rule.")
    outcome: RunOutcome = Field(
        description="due: its task is being made; started: it was; skipped: an earlier one still ran; missed: it was "
        "too long ago; refused: no task can be made of it, `note` says why."
    )
    note: str
    task_id: Id | None = Field(description="The task that was made.")


class ScheduleView(View):
    """A schedule. One of the source `self-update` belongs to the system: it can be paused, and nothing else."""

    id: Id
    source: TaskSource
    workspace_id: Id
    name: str
    prompt: str
    agent_id: Id | None = Field(description="Null: the orchestrator.")
    model: str | None = Field(description="Null: the default model of the moment.")
    cron: str
    cron_words: str = Field(description="The rule in English.")
    timezone: str = Field(description="Of the server.")
    max_attempts: int
    catch_up_minutes: int
    skip_if_running: bool
    enabled: bool
    next_run_at: Moment | None = Field(description="Null while it is paused.")
    last_run: ScheduleRunView | None
    revision: int
    created_at: Moment
    updated_at: Moment


class ScheduleList(ListView):
    """By name, never more than MOST_SCHEDULES."""

    items: list[ScheduleView]
    timezone: str


class ScheduleRunList(ListView):
    """Newest first."""

    items: list[ScheduleRunView]


class CronPreview(View):
    """What a rule means."""

    cron: str
    words: str
    timezone: str
    next: list[Moment] = Field(max_length=PREVIEWED)


class ScheduleFields(Wire):
    """What a person decides about a schedule."""

    name: ScheduleName
    prompt: Prompt
    cron: Cron
    workspace_id: Id | None = Field(default=None, description="The default workspace when absent; it never changes.")
    agent_id: Id | None = Field(default=None, description="Who does it; the orchestrator when absent.")
    model: ModelId | None = None
    max_attempts: Attempts = DEFAULT_ATTEMPTS
    catch_up_minutes: CatchUp = 10
    skip_if_running: SkipIfRunning = True
    enabled: bool = True


class ScheduleChanges(Wire):
    """What is absent stays as it is; null means something for `agentId` and `model` alone."""

    revision: int = Field(ge=0, description="The one you saw last.")
    name: ScheduleName | None = None
    prompt: Prompt | None = None
    cron: Cron | None = None
    agent_id: Id | None = None
    model: ModelId | None = None
    max_attempts: Attempts | None = None
    catch_up_minutes: CatchUp | None = None
    skip_if_running: SkipIfRunning | None = None
    enabled: bool | None = None


class ScheduleNotFoundError(NotFoundError):
    """There is no schedule with this id."""


class TooManySchedulesError(ConflictError):
    """There are as many schedules as there may be. Delete one first."""

    code = "too_many_schedules"


class SystemScheduleError(ConflictError):
    """This schedule belongs to the system. It can be paused and resumed, and nothing else."""

    code = "system_schedule"


class ListSchedules(Query[ScheduleList]):
    """All of them, or those of one workspace."""

    subject: ClassVar = "popagent.scheduler.qry.schedules-list.v1"

    workspace_id: Id | None = None


class CreateSchedule(Command[ScheduleView]):
    """Store a schedule; the command's id is its own, so that a repeated command gives the stored one."""

    subject: ClassVar = "popagent.scheduler.cmd.schedules-create.v1"

    command_id: Id
    fields: ScheduleFields


class UpdateSchedule(Command[ScheduleView]):
    """Change a schedule; 409 with the stored `schedule` when the revision is old."""

    subject: ClassVar = "popagent.scheduler.cmd.schedules-update.v1"

    schedule_id: Id
    changes: ScheduleChanges


class DeleteSchedule(Command[DeletedView]):
    """Delete a schedule and its history; its tasks stay."""

    subject: ClassVar = "popagent.scheduler.cmd.schedules-delete.v1"

    schedule_id: Id


class RunSchedule(Command[ScheduleRunView]):
    """Run it now, paused or not, once for one `command_id`; its times stay as they are."""

    subject: ClassVar = "popagent.scheduler.cmd.schedules-run.v1"

    command_id: Id
    schedule_id: Id


class ListScheduleRuns(Query[ScheduleRunList]):
    """What came of the times of a schedule."""

    subject: ClassVar = "popagent.scheduler.qry.schedules-runs.v1"

    schedule_id: Id
    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class PreviewCron(Query[CronPreview]):
    """Say what a rule means before it is saved; 422 when it is none or never fires."""

    subject: ClassVar = "popagent.scheduler.qry.schedules-preview.v1"

    cron: Cron


class CloseToSchedules(Command[ReferencesView]):
    """Take no new schedule in a workspace for a minute, and count those that it has; `closed_by` opens it again."""

    subject: ClassVar = "popagent.scheduler.cmd.workspaces-close.v1"

    workspace_id: Id
    closed_by: Id


class OpenToSchedules(Command[OpenedView]):
    """Take new schedules again; without it the minute has to pass."""

    subject: ClassVar = "popagent.scheduler.cmd.workspaces-open.v1"

    workspace_id: Id
    closed_by: Id


class ScheduleChanged(Event):
    """A schedule was made or changed, or ran."""

    subject: ClassVar = "popagent.scheduler.evt.schedules-changed.v1"

    schedule: ScheduleView


class ScheduleDeleted(Event):
    """Nothing of it is left but its tasks."""

    subject: ClassVar = "popagent.scheduler.evt.schedules-deleted.v1"

    schedule_id: Id
