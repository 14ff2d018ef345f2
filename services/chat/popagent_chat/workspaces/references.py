"""What refers to a workspace elsewhere: its owners take nothing new while they count and the workspace is deleted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from popagent_bus import Bus
from popagent_kit.errors import AppError, UnavailableError
from popagent_kit.ids import new_id
from popagent_proto.base import Command
from popagent_proto.common import CLOSED_S, OpenedView, ReferencesView
from popagent_proto.docs_indexer.tree import CloseToDocs, OpenToDocs
from popagent_proto.scheduler import CloseToSchedules, OpenToSchedules
from popagent_proto.task_runner.workspaces import CloseToTasks, OpenToTasks

log = logging.getLogger(__name__)

ASK_S: Final = 4.0
# What was begun so late is not committed while nothing new is taken for certain.
USABLE_S: Final = CLOSED_S / 2


@dataclass(frozen=True)
class Elsewhere:
    """How much refers to the workspace at other services; it holds while the workspace is closed to them."""

    tasks: int
    schedules: int
    documents: int
    until: float

    def check(self) -> None:
        """Raise UnavailableError once something new may have come."""
        if time.monotonic() > self.until:
            raise UnavailableError("Deleting the workspace took too long. Nothing was deleted.", retry_after_s=5)


@asynccontextmanager
async def closed(bus: Bus, workspace_id: str) -> AsyncIterator[Elsewhere]:
    """Close the workspace to tasks, schedules and pages while the block deletes it; if that raises, open it again.

    Raises:
        UnavailableError: A service that may have references cannot be asked; the workspace is as it was.
    """
    whose = {"workspace_id": workspace_id, "closed_by": new_id()}
    until = time.monotonic() + USABLE_S
    try:
        tasks, schedules, documents = await asyncio.gather(
            _counted(bus, "task-runner", CloseToTasks(**whose)),
            _counted(bus, "scheduler", CloseToSchedules(**whose)),
            _counted(bus, "docs-indexer", CloseToDocs(**whose)),
        )
        yield Elsewhere(tasks, schedules, documents, until)
    except BaseException:
        opening: list[Command[OpenedView]] = [OpenToTasks(**whose), OpenToSchedules(**whose), OpenToDocs(**whose)]
        await asyncio.gather(*(_opened(bus, each) for each in opening))
        raise


async def _counted(bus: Bus, owner: str, command: Command[ReferencesView]) -> int:
    try:
        view = await bus.ask(command, timeout_s=ASK_S, patience_s=1.0)
    except AppError as error:
        raise UnavailableError(
            f"{owner} cannot be asked what refers to this workspace: {error.message} Nothing was deleted.",
            retry_after_s=5,
        ) from error
    return view.count


async def _opened(bus: Bus, command: Command[OpenedView]) -> None:
    try:
        await bus.ask(command, timeout_s=1.0, patience_s=0.0)
    except AppError as error:
        # It opens by itself within a minute.
        log.info("a workspace stays closed for a moment", extra={"reason": error.message})


def in_words(counts: dict[str, int]) -> str:
    """Return “1 session and 2 tasks refer”; something must be there."""
    named = [f"{count} {name if count == 1 else name + 's'}" for name, count in counts.items() if count]
    if sum(counts.values()) == 1:
        return f"{named[0]} refers"
    return f"{', '.join(named[:-1])} and {named[-1]} refer" if len(named) > 1 else f"{named[0]} refer"


def as_extra(counts: dict[str, int]) -> dict[str, Any]:
    """Return what stands beside the error."""
    return {f"{name}s": count for name, count in counts.items()}
