"""What the handlers of tasks are given, and what a running attempt is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from popagent_db.pool import Pool
from popagent_proto.task_runner.tasks import TaskStarted, TaskStopped
from popagent_rows.outbox import Outbox
from popagent_task_runner.tasks.creating import Creations
from popagent_task_runner.tasks.executor import Executor
from popagent_task_runner.tasks.room import Room
from popagent_task_runner.tasks.transcript import TEXT_EVERY_S, nobody_follows

# An executor that was told to end has this long before its task is shown as interrupted.
ACKNOWLEDGE_S: Final = 10.0
SETTINGS_EVERY_S: Final = 10.0


@dataclass(frozen=True)
class Limits:
    """What an operator sets in the page; read anew for every attempt."""

    slots: int
    timeout_s: float
    look_every_s: float | None = None
    """For tasks that are due and of which nothing told; with every beat of the pulse where that is None."""


class LimitsPort(Protocol):
    """Knows the limits."""

    async def __call__(self) -> Limits:
        """Return them; raises AppError while their owner cannot be reached."""
        ...


class CheckPort(Protocol):
    """Knows which workspaces, agents and models there are."""

    async def __call__(self, workspace_id: str | None, agent_id: str | None, model: str | None) -> str:
        """Return the workspace's id, the default one's for None.

        Raises:
            InvalidInputError: Something named is not there; the field is its name.
        """
        ...


def _nobody_minds(_: TaskStarted | TaskStopped) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class RunDeps:
    """What an attempt needs from its start to its stored end."""

    pool: Pool
    outbox: Outbox
    executor: Executor
    limits: LimitsPort
    observe: Callable[[TaskStarted | TaskStopped], None] = _nobody_minds
    """Called when an attempt has begun or ended; must not wait, and cannot change what became of it."""
    grew: Callable[[str], None] = nobody_follows
    """Called with a task's id when its transcript has more; must not wait."""
    acknowledge_s: float = ACKNOWLEDGE_S
    text_every_s: float = TEXT_EVERY_S
    settings_every_s: float = SETTINGS_EVERY_S


class Tasks(Protocol):
    """The tasks of this process, as the handlers see them."""

    def wake(self) -> None:
        """Make every runner look for due tasks."""

    def wake_for_stops(self) -> None:
        """Make every runner look at what it was asked to end."""


@dataclass(frozen=True)
class TaskDeps:
    """What the handlers need."""

    pool: Pool
    outbox: Outbox
    check: CheckPort
    tasks: Tasks
    room: Room
    creations: Creations
