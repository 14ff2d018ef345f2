"""Move and rename, never over something that exists."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

from popagent_sandbox.contained import ContainedFolder, Place, refuse_changing
from popagent_sandbox.errors import PathMissingError, PathRefusedError, PathTakenError
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.making import place_for_new
from popagent_sandbox.paths import shown
from popagent_sandbox.removing import survey
from popagent_sandbox.renameat2 import rename_new
from popagent_sandbox.replacing import Stopped, locked, refuse_stopped, told
from popagent_sandbox.writing import never, still_as_read


@dataclass(frozen=True)
class Moved:
    """Where something was and where it is now."""

    source: str
    target: str
    is_folder: bool


def move_path(
    folder: ContainedFolder, source: str, target: str, reads: ReadLedger, *, stopped: Stopped = never
) -> Moved:
    """Give a file, folder or link another path; folders above the new one are made.

    Raises:
        PathTakenError: There is something at the new path.
        PathRefusedError: Either path, or something below the folder, there or here, is hidden from agents or protected.
        StaleReadError: The run has read the file, and it is another by now.
        PathMissingError: There is nothing at `source`.
    """
    with ExitStack() as held:
        here = held.enter_context(folder.place(source))
        held.enter_context(told(here.path))
        status = here.status()
        if status is None:
            raise PathMissingError(f"There is no file or folder {shown(here.path)} in the workspace.")
        there = held.enter_context(place_for_new(folder, target))
        _refuse_taken(here, there)
        is_folder = stat.S_ISDIR(status.st_mode)
        if is_folder:
            _refuse_folder(here, there, stopped)
        with locked(folder, here, stopped) if stat.S_ISREG(status.st_mode) else nullcontext() as opened:
            if opened is not None:
                still_as_read(reads, opened)
            refuse_stopped(stopped)
            rename_new(here.fd, here.name, there.fd, there.name)
            reads.moved(here.path, there.path)
        os.fsync(there.fd)
        os.fsync(here.fd)
        return Moved(here.path, there.path, is_folder)


def _refuse_taken(here: Place, there: Place) -> None:
    status = there.status()
    if status is None:
        return
    into = f"; for a place in it, give {shown(f'{there.path}/{here.name}')}" if stat.S_ISDIR(status.st_mode) else ""
    raise PathTakenError(f"There is something at {shown(there.path)} already{into}. Choose a new path.")


def _refuse_folder(here: Place, there: Place, stopped: Stopped) -> None:
    if f"{there.path}/".startswith(f"{here.path}/"):
        raise PathRefusedError(f"{shown(here.path)} cannot be moved into itself.")
    start, end = len(here.path.split("/")), tuple(there.path.split("/"))

    def allowed(path: tuple[str, ...]) -> None:
        refuse_changing(path)
        refuse_changing((*end, *path[start:]))

    survey(here, allowed, stopped)
