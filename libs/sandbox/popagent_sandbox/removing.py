"""Delete files and folders; what is protected keeps the folders it lies in."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from popagent_sandbox.contained import READ, ContainedFolder, Place, refuse_changing
from popagent_sandbox.errors import PathMissingError, PathTakenError, WriteFailedError
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.listing import SKIPPED_FOLDERS
from popagent_sandbox.paths import shown
from popagent_sandbox.replacing import Stopped, locked, refuse_stopped, told
from popagent_sandbox.writing import never, still_as_read

MOST_ENTRIES: Final = 50_000
DEEPEST: Final = 100
_BELOW: Final = READ | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True)
class Removed:
    """What was deleted; `entries` counts a folder and everything in it."""

    path: str
    is_folder: bool
    entries: int


def delete_path(
    folder: ContainedFolder, path: str, reads: ReadLedger, *, recursive: bool = False, stopped: Stopped = never
) -> Removed:
    """Delete a file, a link itself, or a folder; one that is not empty only when `recursive`.

    Raises:
        StaleReadError: The run has read the file, and it is another by now.
        PathTakenError: The folder is not empty.
        PathRefusedError: It, or something below it, is hidden from agents or protected.
        WriteFailedError: There are more than MOST_ENTRIES below it, or it is deeper than DEEPEST; or it was stopped.
        PathMissingError: There is nothing.
    """
    with folder.place(path) as place, told(place.path):
        status = place.status()
        if status is None:
            raise PathMissingError(f"There is no file or folder {shown(place.path)} in the workspace.")
        if stat.S_ISDIR(status.st_mode):
            entries = _delete_folder(place, recursive, stopped)
        else:
            _delete_file(folder, place, status, reads, stopped)
            entries = 1
        os.fsync(place.fd)
        reads.forget(place.path)
        return Removed(place.path, stat.S_ISDIR(status.st_mode), entries)


def survey(place: Place, allowed: Callable[[tuple[str, ...]], None], stopped: Stopped = never) -> None:
    """Ask `allowed` about every path below the folder at the place; more than MOST_ENTRIES raise WriteFailedError."""
    _Walk(allowed, stopped).folder(place.fd, place.name, tuple(place.path.split("/")), remove=False)


def _delete_file(
    folder: ContainedFolder, place: Place, status: os.stat_result, reads: ReadLedger, stopped: Stopped
) -> None:
    if not stat.S_ISREG(status.st_mode):  # a link, pipe or socket is a name and is never opened
        os.unlink(place.name, dir_fd=place.fd)
        return
    with locked(folder, place, stopped) as opened:
        still_as_read(reads, opened)
        refuse_stopped(stopped)
        os.unlink(place.name, dir_fd=place.fd)


def _delete_folder(place: Place, recursive: bool, stopped: Stopped) -> int:
    if not recursive:
        try:
            os.rmdir(place.name, dir_fd=place.fd)
        except OSError as error:
            if not _holds_something(place):
                raise
            raise PathTakenError(
                f"{shown(place.path)} is not empty. Give recursive=true to delete everything in it."
            ) from error
        return 1
    survey(place, _refuse_deleting, stopped)  # all of it first, so that a refusal leaves everything as it was
    return _Walk(_refuse_deleting, stopped).folder(place.fd, place.name, tuple(place.path.split("/")), remove=True)


def _refuse_deleting(path: tuple[str, ...]) -> None:
    """What lies in a generated tree (packages that were fetched, for example) can be made again, whatever its name."""
    if not SKIPPED_FOLDERS & set(path[:-1]):
        refuse_changing(path)


def _holds_something(place: Place) -> bool:
    with _opened(place.fd, place.name) as fd, os.scandir(fd) as scan:
        return next(scan, None) is not None


class _Walk:
    """Goes through a tree by descriptors, the deepest first; links are names, never ways."""

    def __init__(self, allowed: Callable[[tuple[str, ...]], None], stopped: Stopped) -> None:
        self.allowed = allowed
        self.stopped = stopped
        self.entries = 0

    def folder(self, above: int, name: str, path: tuple[str, ...], *, remove: bool, depth: int = 0) -> int:
        self._count(path)
        if depth > DEEPEST:
            raise WriteFailedError(f"{shown('/'.join(path))} lies too deep. Nothing was changed.")
        with _opened(above, name) as fd:
            for entry in _names(fd):
                below = (*path, entry)
                self.allowed(below)
                kind = os.stat(entry, dir_fd=fd, follow_symlinks=False).st_mode
                if stat.S_ISDIR(kind):
                    self.folder(fd, entry, below, remove=remove, depth=depth + 1)
                else:
                    self._count(below)
                    if remove:
                        os.unlink(entry, dir_fd=fd)
        if remove:
            os.rmdir(name, dir_fd=above)
        return self.entries

    def _count(self, path: tuple[str, ...]) -> None:
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise WriteFailedError(f"There are more than {MOST_ENTRIES} files there. Delete or move smaller folders.")
        if self.stopped():
            raise WriteFailedError(f"The call was ended at {shown('/'.join(path))}; a part may be gone.")


@contextmanager
def _opened(above: int, name: str) -> Iterator[int]:
    fd = os.open(name, _BELOW, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)


def _names(fd: int) -> list[str]:
    with os.scandir(fd) as scan:
        return [entry.name for entry in scan]
