"""Whole files, in one step: locked, written aside, flushed to the disk, then put in place of what was there."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from popagent_kit.errors import AppError
from popagent_sandbox.contained import ContainedFolder, Opened, Place
from popagent_sandbox.errors import (
    FileBusyError,
    PathMissingError,
    PathRefusedError,
    PathTakenError,
    StaleReadError,
    WriteFailedError,
    WrongKindError,
)
from popagent_sandbox.paths import shown
from popagent_sandbox.renameat2 import rename_new

LOCK_WAIT_S: Final = 10.0
_LOCK_POLL_S: Final = 0.01
# Opening for writing changes nothing, and tells before any work whether this account may; O_NONBLOCK waits for nobody.
_CHANGE: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMELESS: Final = getattr(os, "O_TMPFILE", 0)
_NO_NAMELESS: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
_OWN_FILES: Final = "/proc/self/fd"

Stopped = Callable[[], bool]


@contextmanager
def locked(folder: ContainedFolder, place: Place, stopped: Stopped) -> Iterator[Opened]:
    """Open the regular file at the place and hold it against every other change through here, of any process.

    The lock is flock(2) on the file itself: it needs no file beside it, holds across containers that share the disk,
    and ends with its process. Programs that do not ask for it are not kept out; `replaced` looks once more.

    Raises:
        PathMissingError: There is nothing.
        PathRefusedError: It is a link, or neither file nor folder.
        WrongKindError: It is a folder.
        FileBusyError: Somebody held it for LOCK_WAIT_S.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    while time.monotonic() <= deadline:
        _refuse_unless_file(folder, place)
        fd = os.open(place.name, _CHANGE, dir_fd=place.fd)
        try:
            opened = Opened(fd, place.path, os.fstat(fd))
            if not stat.S_ISREG(opened.status.st_mode):
                continue  # exchanged since it was looked at
            _lock(fd, place.path, deadline, stopped)
            now = place.status()
            # Who had the lock before us put another file in its place, as we will do: that one is to be locked.
            if now is not None and os.path.samestat(now, opened.status):
                yield Opened(fd, place.path, now)
                return
        finally:
            os.close(fd)
    raise _busy(place.path)


@contextmanager
def replaced(place: Place, was: os.stat_result, content: bytes, stopped: Stopped) -> Iterator[None]:
    """Put `content` in place of the file that `was` there, with its mode and, where the account may, its owner.

    The block runs when that is done; until it ends nobody else can lock the new file.

    Raises:
        StaleReadError: The file was changed or exchanged meanwhile.
    """
    with _written(place, content, was) as (fd, name):
        aside = name or _linked_aside(place, fd)
        try:
            refuse_stopped(stopped)
            now = place.status()
            if now is None or _version(now) != _version(was):
                raise StaleReadError(f"{shown(place.path)} was changed by somebody else just now. Read it again.")
            os.rename(aside, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except BaseException:
            os.unlink(aside, dir_fd=place.fd)
            raise
        yield
        os.fsync(place.fd)


@contextmanager
def created(place: Place, content: bytes, stopped: Stopped) -> Iterator[None]:
    """Make a file that was not there; it appears whole or not at all. The block runs as that of `replaced`.

    Raises:
        PathTakenError: Something is there by now.
    """
    with _written(place, content, None) as (fd, name):
        try:
            refuse_stopped(stopped)
            if name is None:
                os.link(f"{_OWN_FILES}/{fd}", place.name, dst_dir_fd=place.fd, follow_symlinks=True)
            else:
                rename_new(place.fd, name, place.fd, place.name)
        except BaseException as error:
            if name is not None:
                os.unlink(name, dir_fd=place.fd)
            if isinstance(error, FileExistsError):
                raise PathTakenError(
                    f"{shown(place.path)} was made by somebody else just now. Read it first."
                ) from error
            raise
        yield
        os.fsync(place.fd)


def refuse_stopped(stopped: Stopped) -> None:
    """Raise when the call was ended from outside: whoever ended it is told that nothing happens any more."""
    if stopped():
        raise WriteFailedError("The call was ended before anything was changed.")


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn what the system refuses inside the block into a refusal that says it in words."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, path) from error


def adopt(fd: int, above: os.stat_result) -> None:
    """Give what was made the owner of its folder; root alone can, and a person's checkout stays the person's."""
    if os.geteuid() == 0:
        os.fchown(fd, above.st_uid, above.st_gid)


@contextmanager
def _written(place: Place, content: bytes, was: os.stat_result | None) -> Iterator[tuple[int, str | None]]:
    """Give the content as a file without a name, so that a killed process leaves nothing; with one where it must be."""
    fd, name = _nameless(place)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if was is None:
                adopt(fd, os.fstat(place.fd))
            else:
                _made_like(fd, was)
            os.fsync(fd)
            fcntl.flock(fd, fcntl.LOCK_EX)  # before it has a name by which somebody else could wait for it
        except BaseException:
            if name is not None:
                os.unlink(name, dir_fd=place.fd)
            raise
        yield fd, name
    finally:
        os.close(fd)


def _nameless(place: Place) -> tuple[int, str | None]:
    if _NAMELESS and os.path.isdir(_OWN_FILES):
        try:
            return os.open(".", _NAMELESS | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=place.fd), None
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
    name = _aside()
    return os.open(name, _NEW, 0o666, dir_fd=place.fd), name


def _linked_aside(place: Place, fd: int) -> str:
    name = _aside()
    os.link(f"{_OWN_FILES}/{fd}", name, dst_dir_fd=place.fd, follow_symlinks=True)
    return name


def _aside() -> str:
    return f".popagent-{secrets.token_hex(8)}.tmp"  # hidden from agents by `denied.py`


def _made_like(fd: int, was: os.stat_result) -> None:
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (was.st_uid, was.st_gid):
        with suppress(PermissionError):  # an ordinary account cannot give files away; the content is what matters
            os.fchown(fd, was.st_uid, was.st_gid)
    # Set-user-id and its like are not kept: they were given to the content that was there.
    os.fchmod(fd, was.st_mode & 0o777)


def _refuse_unless_file(folder: ContainedFolder, place: Place) -> None:
    status = place.status()
    if status is None:
        raise PathMissingError(f"There is no file {shown(place.path)} in the workspace.")
    if stat.S_ISLNK(status.st_mode):
        raise PathRefusedError(f"{shown(place.path)} is a link{_target(folder, place.path)}.")
    if stat.S_ISDIR(status.st_mode):
        raise WrongKindError(f"{shown(place.path)} is a folder, not a file.")
    if not stat.S_ISREG(status.st_mode):
        raise PathRefusedError(f"{shown(place.path)} is no ordinary file (a pipe, socket or device).")


def _target(folder: ContainedFolder, path: str) -> str:
    try:
        with folder.open(path) as opened:
            return f" to {shown(opened.path)}. Use that path"
    except AppError:
        return " that cannot be followed"


def _lock(fd: int, path: str, deadline: float, stopped: Stopped) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            refuse_stopped(stopped)
            if time.monotonic() > deadline:
                raise _busy(path) from error
            time.sleep(_LOCK_POLL_S)


def _busy(path: str) -> FileBusyError:
    return FileBusyError(f"{shown(path)} is being changed by somebody else. Try again in a moment.")


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _refusal(error: OSError, path: str) -> AppError:
    name = shown(path)
    code = error.errno or 0
    if code in (errno.ENOSPC, errno.EDQUOT):
        return WriteFailedError(f"There is no room left on the disk. {name} is as it was.")
    if code == errno.EFBIG:
        return WriteFailedError(f"{name} would be larger than this system allows. It is as it was.")
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PathRefusedError(f"{name} may not be changed by the account that popagent runs under.")
    if code in (errno.EEXIST, errno.ENOTEMPTY):
        return PathTakenError(f"There is something at {name} already.")
    if code in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP):
        return StaleReadError(f"{name} was changed by somebody else just now. Look at it again.")
    if code == errno.ETXTBSY:
        return FileBusyError(f"{name} is a program that runs at the moment.")
    if code == errno.EXDEV:
        return PathRefusedError(f"{name} lies on another disk.")
    return WriteFailedError(f"{name} could not be changed: {os.strerror(code)}.")
