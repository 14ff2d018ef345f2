"""What the handlers of tasks are given, and what a running attempt is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from popagent_db.pool import Pool
from popagent_rows.outbox import Outbox
from popagent_task_runner.tasks.executor import Executor
from popagent_task_runner.tasks.room import Room
from popagent_task_runner.tasks.transcript import TEXT_EVERY_S

# An executor that was told to end has this long before its task is shown as interrupted.
ACKNOWLEDGE_S: Final = 10.0
SETTINGS_EVERY_S: Final = 10.0


@dataclass(frozen=True)
class Limits:
    """What an operator sets in the page; read anew for every attempt."""

    slots: int
    timeout_s: float


class LimitsPort(Protocol):
    """Knows the limits."""

    async def __call__(self) -> Limits:
        """Return them; raises AppError while their owner cannot be reached."""
        ...


class Catalogue(Protocol):
    """Knows which workspaces, agents and models there are."""

    async def workspace(self, workspace_id: str | None) -> str:
        """Return the id, or that of the default workspace; raises InvalidInputError naming the field."""
        ...

    async def check_agent(self, agent_id: str) -> None:
        """Raise InvalidInputError naming the field unless there is such an agent."""

    async def check_model(self, model: str) -> None:
        """Raise InvalidInputError naming the field unless the model can be asked, as far as is known."""


@dataclass(frozen=True)
class RunDeps:
    """What an attempt needs from its start to its stored end."""

    pool: Pool
    outbox: Outbox
    executor: Executor
    limits: LimitsPort
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
    catalogue: Catalogue
    tasks: Tasks
    room: Room
