"""Make folders, and the folders above what is new."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from popagent_kit.errors import AppError
from popagent_sandbox.contained import READ, ContainedFolder, Place, refuse_changing
from popagent_sandbox.errors import PathMissingError, PathRefusedError, WrongKindError
from popagent_sandbox.paths import refuse_new_name, shown
from popagent_sandbox.replacing import adopt, told

# As deep as a search goes; deeper trees are an accident, and hard to get rid of.
DEEPEST: Final = 40


def make_folder(folder: ContainedFolder, path: str) -> tuple[str, ...]:
    """Make a folder with those above it; returns the paths that were made, none when it was there already.

    When it cannot make all of them it makes none.

    Raises:
        WrongKindError: There is a file in the way.
    """
    names = folder.names(path)
    refuse_changing(names)
    if len(names) > DEEPEST:
        raise PathRefusedError(f"{shown(path)} is too deep: folders may lie {DEEPEST} deep at most.")
    made: list[str] = []
    try:
        for end in range(1, len(names) + 1):
            with folder.place("/".join(names[:end])) as place, told(place.path):
                if _made(folder, place):
                    made.append(place.path)
    except BaseException:
        _unmade(folder, made)
        raise
    return tuple(made)


@contextmanager
def place_for_new(folder: ContainedFolder, path: str) -> Iterator[Place]:
    """Open the folder that `path` lies in as `ContainedFolder.place` does, and make it first where there is none.

    Folders that were made stay only when the block ends well; what the system refuses in it is told in words.
    """
    made: tuple[str, ...] = ()
    try:
        with ExitStack() as held:
            try:
                place = held.enter_context(folder.place(path))
            except PathMissingError:
                names = folder.names(path)
                refuse_new_name(names)
                made = make_folder(folder, "/".join(names[:-1]))
                place = held.enter_context(folder.place(path))
            held.enter_context(told(place.path))
            if place.status() is None:  # what exists may have an odd name and can be changed; nothing new gets one
                refuse_new_name((place.name,))
            yield place
    except BaseException:
        _unmade(folder, made)
        raise


def _made(folder: ContainedFolder, place: Place) -> bool:
    status = place.status()
    if status is None:
        refuse_new_name((place.name,))
        try:
            os.mkdir(place.name, dir_fd=place.fd)
        except FileExistsError:
            return _made(folder, place)
        _adopted(place)
        return True
    if stat.S_ISLNK(status.st_mode):
        with folder.open(place.path) as opened:
            is_folder = opened.is_folder
    else:
        is_folder = stat.S_ISDIR(status.st_mode)
    if not is_folder:
        raise WrongKindError(f"{shown(place.path)} is there already and is no folder.")
    return False


def _adopted(place: Place) -> None:
    fd = os.open(place.name, READ | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place.fd)
    try:
        adopt(fd, os.fstat(place.fd))
    finally:
        os.close(fd)
    os.fsync(place.fd)


def _unmade(folder: ContainedFolder, made: Sequence[str]) -> None:
    for path in reversed(made):
        try:
            with folder.place(path) as place:
                os.rmdir(place.name, dir_fd=place.fd)
        except (OSError, AppError):
            return  # somebody uses it by now; an empty folder harms nobody
