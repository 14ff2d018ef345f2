"""The commands of one run in one workspace: with a time limit, or in the background until they are ended."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConflictError, InvalidInputError, NotFoundError
from popagent_sandbox.confined import Confined, ConfinementError, Ended
from popagent_sandbox.confinement import confinement_found
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import PathMissingError, PathRefusedError
from popagent_sandbox.grants import Grant, GrantRefusedError, Limits
from popagent_sandbox.hidden import HiddenPaths
from popagent_sandbox.output import Printed
from popagent_sandbox.plan import plan_for

DEFAULT_TIMEOUT_S: Final = 120
LONGEST_TIMEOUT_S: Final = 600
LONGEST_COMMAND_BYTES: Final = 100_000
MOST_IN_BACKGROUND: Final = 4
_SHELLS: Final = ("/bin/bash", "/bin/sh")


class CommandRefusedError(InvalidInputError):
    """This cannot be run."""

    code = "command_refused"


class NoSuchCommandError(NotFoundError):
    """No command in the background has this name."""

    code = "command_missing"


class CommandsClosedError(ConflictError):
    """The run that this belongs to has ended."""

    code = "commands_closed"


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that is over, with nothing of it left alive."""

    ended: Ended
    printed: Printed
    took_s: float


@dataclass(frozen=True, slots=True)
class Look:
    """A command in the background: what it printed since the last look, and how it ended, None while it runs."""

    printed: Printed
    ended: Ended | None


class Commands:
    """Runs commands below `folder`, which the caller keeps open until this is closed. One event loop uses it.

    Commands see the workspace and each other's files in it, but not each other: each has its own processes, network
    and /tmp.

    Raises:
        GrantRefusedError: Something that lies in the workspace itself is to be mounted.
    """

    def __init__(self, folder: ContainedFolder, grant: Grant | None = None, limits: Limits | None = None) -> None:
        self._folder = folder
        self._grant = grant or Grant()
        self._limits = limits or Limits.of_this_machine()
        inside = [mount.source for mount in self._grant.mounts if Path(mount.source).is_relative_to(folder.root)]
        if inside:  # a command could put a link to anything in its place
            raise GrantRefusedError(f"{inside[0]} lies in the workspace; mount what agents cannot change.")
        self._hidden = HiddenPaths(folder)
        self._looking = asyncio.Lock()
        self._running: set[Confined] = set()
        self._background: dict[str, Confined] = {}
        self._named = 0
        self._closed = False

    async def run(self, command: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> Ran:
        """Return once the command and whatever it started are over; cancelling this ends them all.

        Raises:
            ConfinementError: It cannot be confined, so it was not run.
            CommandRefusedError: It is too long or holds a zero byte.
            TooMuchToHideError: This workspace holds more than can be hidden from it.
        """
        began = time.monotonic()
        confined = await self._start(command)
        try:
            ended = await confined.finish(min(timeout_s, LONGEST_TIMEOUT_S))
        finally:
            self._running.discard(confined)
        return Ran(ended, confined.output.take(), time.monotonic() - began)

    async def start(self, command: str) -> str:
        """Start a command in the background and return its name.

        Raises:
            ConflictError: So many run already. Besides, whatever `run` raises.
        """
        if sum(confined.running for confined in self._background.values()) >= MOST_IN_BACKGROUND:
            raise ConflictError(f"{MOST_IN_BACKGROUND} commands run in the background already; end one of them first.")
        confined = await self._start(command)
        self._named += 1
        name = f"p{self._named}"
        self._background[name] = confined
        return name

    async def look(self, name: str, wait_s: float = 0) -> Look:
        """Return what a command in the background printed since the last look; if that is nothing, wait a little.

        Raises:
            NoSuchCommandError: There is none of this name.
        """
        confined = self._of_name(name)
        await confined.news(wait_s)
        ended = confined.ended
        return Look(confined.output.take(), ended)

    async def end(self, name: str) -> Look:
        """End a command in the background and return its last output; raises as `look`."""
        confined = self._of_name(name)
        confined.kill()
        await confined.over()
        return await self.look(name)

    def close(self) -> None:
        """End every command at once; they are dead when the kernel has gone through them, without waiting here."""
        self._closed = True
        for confined in self._running:
            confined.kill("its run ended")

    async def _start(self, command: str) -> Confined:
        found = await confinement_found()
        if found.program is None:
            raise ConfinementError(found.problem or "")
        _refuse_bad_text(command)
        async with self._looking:
            hidden = await asyncio.to_thread(self._hidden.look)
        with ExitStack() as held:
            workspace = held.enter_context(self._folder.descriptor())
            pinned = await asyncio.to_thread(self._opened, hidden.pinned, held) if hidden.pinned else {}
            protected = await asyncio.to_thread(self._opened, hidden.protected, held) if hidden.protected else {}
            if self._closed:
                raise CommandsClosedError
            plan = plan_for(
                found.program,
                [next(shell for shell in _SHELLS if os.access(shell, os.X_OK)), "-c", command],
                workspace_fd=workspace,
                hidden=hidden,
                pinned_fds=pinned,
                protected_fds=protected,
                grant=self._grant,
                limits=self._limits,
            )
            confined = await Confined.start(plan)
        self._running.add(confined)
        if self._closed:
            confined.kill("its run ended")
        return confined

    def _opened(self, paths: Sequence[str], held: ExitStack) -> dict[str, int]:
        """Return descriptors of those that are there still."""
        found = {}
        for path in paths:
            with suppress(PathMissingError, PathRefusedError):
                found[path] = held.enter_context(self._folder.found(path))
        return found

    def _of_name(self, name: str) -> Confined:
        if name not in self._background:
            known = ", ".join(self._background) or "none"
            raise NoSuchCommandError(f"No command in the background is called {name[:40]}. There is: {known}.")
        return self._background[name]


def _refuse_bad_text(command: str) -> None:
    try:
        size = len(command.encode())
    except UnicodeEncodeError as error:
        raise CommandRefusedError("A command must be valid Unicode text.") from error
    if "\0" in command:
        raise CommandRefusedError("A command holds no zero byte.")
    if size > LONGEST_COMMAND_BYTES:
        raise CommandRefusedError(
            f"A command has at most {LONGEST_COMMAND_BYTES} bytes. Write a script to a file and run that."
        )
