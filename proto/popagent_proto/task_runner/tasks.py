"""Tasks: work that goes on when nobody watches, and is tried again where that repeats no side effect."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from popagent_kit.errors import ConflictError, NotFoundError, RateLimitedError
from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, ListView, Moment, Query, Text, View, Wire, not_blank
from popagent_proto.chat.models import ModelId
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.task_runner.activity import RECORDS_KEPT, ActivityRecord, TranscriptPage

PROMPT_CHARACTERS: Final = 100_000
EVIDENCE_CHARACTERS: Final = 4_000
OUTPUT_CHARACTERS: Final = 200_000
EXCERPT_CHARACTERS: Final = 500
EVENT_EXCERPT_CHARACTERS: Final = 8_000
TITLE_CHARACTERS: Final = 120
ERROR_CHARACTERS: Final = 1_000
MOST_ATTEMPTS: Final = 10
DEFAULT_ATTEMPTS: Final = 3

TaskState = Literal["queued", "running", "cancelling", "completed", "failed", "cancelled", "dead-letter"]
TaskSource = Literal["user", "self-update"]
TaskErrorClass = Literal[
    "provider",
    "rate-limit",
    "database",
    "infrastructure",
    "restart",
    "browser",
    "timeout",
    "runner-lost",
    "stale",
    "hook-denied",
    "cancelled",
    "validation",
    "permission",
    "configuration",
    "unknown",
]
TaskOutcome = Literal["completed", "failed", "cancelled", "dead-letter"]


Prompt = Annotated[
    Text,
    Field(min_length=1, max_length=PROMPT_CHARACTERS, description="What is to be done; characters, not tokens."),
    AfterValidator(not_blank),
]
Evidence = Annotated[
    Text,
    Field(min_length=1, max_length=EVIDENCE_CHARACTERS, description="Why it counts as done."),
    AfterValidator(not_blank),
]


class TaskSummary(View):
    """A task as lists show it: without its prompt, its output and its transcript."""

    id: Id
    title: str = Field(description="The beginning of the prompt, one line.")
    state: TaskState
    source: TaskSource = Field(description="Never changes, nor does the workspace.")
    workspace_id: Id
    workflow: bool = Field(description="Runs the governed workflow of repository changes.")
    agent_id: Id | None = Field(description="Null: the orchestrator.")
    model: str | None = Field(description="Null: the default model of the moment.")
    session_id: Id | None
    schedule_id: Id | None
    remediates: Id | None = Field(description="The failed task whose cause this one is to remove.")
    priority: int = Field(description="The highest goes first.")
    attempt_count: int
    max_attempts: int = Field(
        description="Rises by one with each attempt that a passing cause ended before it could do anything."
    )
    next_attempt_at: Moment | None = Field(description="Null unless it is queued.")
    last_error_class: TaskErrorClass | None
    last_error: str | None = Field(max_length=ERROR_CHARACTERS)
    dead_lettered_at: Moment | None
    interrupted_at: Moment | None = Field(
        description="Since when the running attempt does not heed that it was told to end; it keeps its slot."
    )
    turn_id: Id | None = Field(description="Of the newest attempt; so is the trace.")
    trace_id: str | None
    excerpt: str = Field(max_length=EXCERPT_CHARACTERS, description="The beginning of the output.")
    version: int = Field(description="Rises with every change but the transcript's.")
    created_at: Moment
    started_at: Moment | None = Field(description="Of the newest attempt.")
    ended_at: Moment | None


class TaskDetail(TaskSummary):
    """A task with all of its text."""

    prompt: str
    output: str = Field(description="Empty until it completed.")
    explanation: str | None = Field(description="Why nothing tries it again.")
    resolution: str | None = Field(description="The evidence with which a person called it done.")
    remediation_id: Id | None = Field(description="The task that was made because this one failed.")


class TaskView(TaskDetail):
    """A task with its transcript: the newest records, oldest first, about 600 kB at most."""

    activity: list[ActivityRecord]
    previous_cursor: int | None = Field(description="Asks for the records before these; null at the beginning.")
    revision: int = Field(description="Of the transcript; ask for what came after this one.")


class TaskList(ListView):
    """Newest first."""

    items: list[TaskSummary]


class CreateTaskBody(Wire):
    """What a client sends. Whose work it is (`source`) is never a client's to say."""

    prompt: Prompt
    workspace_id: Id | None = Field(default=None, description="The default workspace when absent.")
    agent_id: Id | None = Field(default=None, description="Who does it; the orchestrator when absent.")
    model: ModelId | None = None
    priority: int = Field(default=0, ge=-10, le=10)
    max_attempts: int = Field(default=DEFAULT_ATTEMPTS, ge=1, le=MOST_ATTEMPTS)


class CreateTask(Command[TaskSummary]):
    """Store a task; the command's id is the task's, so that a repeated command gives the stored one.

    429 while as many tasks of its workspace wait as may. What is beside the body is said by services alone.
    """

    subject: ClassVar = "popagent.task-runner.cmd.tasks-create.v1"

    command_id: Id
    body: CreateTaskBody
    source: TaskSource = "user"
    workflow: bool = False
    session_id: Id | None = None
    schedule_id: Id | None = None
    unless_scheduled: bool = Field(
        default=False, description="409 schedule_busy while another task of this schedule waits or runs."
    )


class ListTasks(Query[TaskList]):
    """At most 200 at a time; cheap however long the transcripts are."""

    subject: ClassVar = "popagent.task-runner.qry.tasks-list.v1"

    state: list[TaskState] | None = Field(default=None, max_length=7, description="Any of these.")
    workspace_id: Id | None = None
    schedule_id: Id | None = None
    source: TaskSource | None = None
    q: Text | None = Field(default=None, min_length=1, max_length=200, description="Text in the title, in any case.")
    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class GetTask(Query[TaskView]):
    """One task with the newest page of its transcript."""

    subject: ClassVar = "popagent.task-runner.qry.tasks-get.v1"

    task_id: Id
    limit: int = Field(default=RECORDS_KEPT, ge=0, le=RECORDS_KEPT, description="Records of the transcript.")


class ReadTranscript(Query[TranscriptPage]):
    """Records before the record `before`, or those that were written since the revision `after`; not both."""

    subject: ClassVar = "popagent.task-runner.qry.tasks-transcript.v1"

    task_id: Id
    before: int | None = Field(default=None, ge=0, le=2**62)
    after: int | None = Field(default=None, ge=0, le=2**62)
    limit: int = Field(default=RECORDS_KEPT, ge=1, le=RECORDS_KEPT)


class TaskNotFoundError(NotFoundError):
    """There is no task with this id."""


class TaskStateError(ConflictError):
    """The task is in a state that does not allow this."""

    code = "task_state"


class ScheduleBusyError(ConflictError):
    """A task of an earlier time of this schedule still waits or runs."""

    code = "schedule_busy"


class QueueFullError(RateLimitedError):
    """As many tasks of this workspace wait as may. Try again when some have been done."""

    code = "queue_full"


class CancelTask(Command[TaskSummary]):
    """Cancel what waits at once; ask what runs to end, which is `cancelling` until it has.

    Again: the same answer. 409 with the state for what ended otherwise.
    """

    subject: ClassVar = "popagent.task-runner.cmd.tasks-cancel.v1"

    task_id: Id


class ResolveTaskBody(Wire):
    """Why a task that did not complete counts as done."""

    evidence: Evidence


class ResolveTask(Command[TaskSummary]):
    """Call a failed, cancelled or dead-lettered task completed; 409 with the state for any other."""

    subject: ClassVar = "popagent.task-runner.cmd.tasks-resolve.v1"

    task_id: Id
    body: ResolveTaskBody


class RetryTask(Command[TaskSummary]):
    """Give a failed or dead-lettered task one more attempt, whatever it had begun: a person says so, never popagent.

    It stays the same task: the attempt is told which calls the earlier ones had begun, which a new task would not be.
    409 with the state for any other.
    """

    subject: ClassVar = "popagent.task-runner.cmd.tasks-retry.v1"

    task_id: Id


class DeleteTask(Command[DeletedView]):
    """Delete a task that has ended, with its transcript; 409 with the state while it waits or runs."""

    subject: ClassVar = "popagent.task-runner.cmd.tasks-delete.v1"

    task_id: Id


class TaskChanged(Event):
    """A task was made, cancelled, asked to end, resolved, or waits again without an attempt in between."""

    subject: ClassVar = "popagent.task-runner.evt.tasks-changed.v1"

    task: TaskSummary


class TaskStarted(Event):
    """An attempt began. Its turn and trace are those of its end."""

    subject: ClassVar = "popagent.task-runner.evt.tasks-started.v1"

    task: TaskSummary
    attempt: int
    turn_id: Id
    trace_id: str | None


class TaskStopped(Event):
    """An attempt ended, told after it was stored. `task.state` is `queued` when another one follows."""

    subject: ClassVar = "popagent.task-runner.evt.tasks-stopped.v1"

    task: TaskSummary
    attempt: int
    turn_id: Id
    trace_id: str | None
    outcome: TaskOutcome
    error_class: TaskErrorClass | None
    error: str | None = Field(max_length=ERROR_CHARACTERS)
    excerpt: str = Field(max_length=EVENT_EXCERPT_CHARACTERS, description="The beginning of the output.")


class TaskInterrupted(Event):
    """An attempt that was told to end does not; its task stays as it is and nobody else takes it."""

    subject: ClassVar = "popagent.task-runner.evt.tasks-interrupted.v1"

    task: TaskSummary
    attempt: int
    turn_id: Id
    trace_id: str | None


class TaskDeleted(Event):
    """Nothing of it is left."""

    subject: ClassVar = "popagent.task-runner.evt.tasks-deleted.v1"

    task_id: Id
