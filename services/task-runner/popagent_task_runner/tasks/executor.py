"""What carries a task out, and what it is given. The runner knows nothing else of agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from popagent_proto.task_runner.activity import ActivityKind, CallStatus
from popagent_proto.task_runner.tasks import TaskErrorClass
from popagent_task_runner.tasks.rows import LeasedTask

StopReason = Literal["cancelled", "timeout", "shutdown", "lost"]


class StoppedError(Exception):
    """The executor ended because it was told to; what it had so far does not count as the task's output."""


class TaskFailedError(Exception):
    """The attempt failed by this cause; `message` is for a person."""

    def __init__(self, cause: TaskErrorClass, message: str) -> None:
        super().__init__(message)
        self.cause: TaskErrorClass = cause
        self.message = message


class Stop:
    """Tells an executor to end; half of the time for that later its asyncio task is cancelled too."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.reason: StopReason | None = None

    def ask(self, reason: StopReason) -> None:
        """Ask, or ask again for another reason."""
        self.reason = reason
        self.asked.set()


@dataclass(frozen=True)
class Call:
    """A tool call of a note; long values are cut, and secrets blanked, when it is stored."""

    call_id: str
    tool: str
    arguments: Any = None
    result: str | None = None
    error: str | None = None
    status: CallStatus = "running"


@dataclass(frozen=True)
class Note:
    """A record for the transcript, of any length; `run_id` tells runs of the same agent apart."""

    kind: ActivityKind
    text: str = ""
    run_id: str = ""
    agent_id: str | None = None
    step: int = 0
    finish_reason: str | None = None
    calls: Sequence[Call] = field(default_factory=tuple)


class TaskRun(Protocol):
    """One attempt, as its executor sees it."""

    task: LeasedTask
    prompt: str
    """The task's, and after it what earlier attempts may have changed already."""
    turn_id: str
    trace_id: str | None
    stop: Stop

    @property
    def held(self) -> bool:
        """Whether nobody else can have the task; what is published live asks it first."""
        ...

    def check(self) -> None:
        """Raise LeaseLostError once the attempt may belong to another runner; call it before every effect."""

    async def intend(self, step: int, call_id: str, tool: str, arguments: str) -> None:
        """Write down, fenced, that a call which is not read-only is about to be made. No row, no call.

        Raises:
            LeaseLostError: Another runner has the task.
        """

    def note(self, note: Note) -> None:
        """Add a record to the transcript, soon stored; never waits and never fails."""

    def said(self, delta: Note) -> None:
        """Let the text of the same agent's running step grow by `delta.text`; stored about once a second."""


@dataclass(frozen=True)
class Finished:
    """The task is done; blank output counts as a failure."""

    output: str


class Executor(Protocol):
    """Carries an attempt out. It ends soon after `run.stop` asks, with StoppedError unless it was done just then."""

    async def __call__(self, run: TaskRun) -> Finished:
        """Return the output, or raise: TaskFailedError, or what `causes.py` reads a cause from."""
        ...
