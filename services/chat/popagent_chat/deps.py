"""What the handlers of this service are given, and what a running turn is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from popagent_bus import Bus
from popagent_chat.hooks.ending import SessionEnds
from popagent_chat.secrets.keyring import Keyring
from popagent_chat.skills.shelf import SkillShelf
from popagent_chat.turns.store import LeasedTurn
from popagent_db.pool import Pool
from popagent_rows.jobs import Jobs
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.worker import Slot
from popagent_runs.begun import RunParts
from popagent_sandbox.cloning import CloneBounds


class Turns(Protocol):
    """The turns of this process, as the handlers see them."""

    @property
    def holder(self) -> Holder:
        """Who owns a turn that runs here."""
        ...

    def reserve(self) -> Slot[LeasedTurn] | None:
        """Return a free slot for a turn that is about to be stored, if there is one."""
        ...

    def wake(self) -> None:
        """Make every replica look at its rows, this one at once."""
        ...


def _nobody_minds() -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class RunDeps(RunParts):
    """What a turn needs from its first step to its stored end."""

    pool: Pool
    outbox: Outbox
    bus: Bus
    skills: SkillShelf = field(default_factory=SkillShelf)


@dataclass(frozen=True, kw_only=True)
class ChatDeps(RunDeps):
    """Built once by the composition root."""

    turns: Turns
    jobs: Jobs
    clone_bounds: CloneBounds
    keyring: Keyring
    session_ends: SessionEnds
    connection_tests: asyncio.Semaphore
    """Held while the model connection of somebody is tried."""
    own_ports: frozenset[int] = frozenset()
    """Ports of this machine where popagent itself listens."""
    next_turn_changed: Callable[[], None] = _nobody_minds
    """Called after, or shortly before, a commit that changes what turns begin with."""
    channel_posted: Callable[[], None] = _nobody_minds
    """Called after a post was stored; a task may be to make of it."""
