"""A folder that nothing opened through it can leave: every path walks descriptors, never the text of a path."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from popagent_sandbox.denied import why_denied
from popagent_sandbox.errors import PathMissingError, PathRefusedError, WrongKindError
from popagent_sandbox.openat2 import Openat2MissingError, open_beneath
from popagent_sandbox.paths import COMMANDS_ROOT, relative_parts, shown
from popagent_sandbox.protected import refuse_protected

# Looking at something must not open it: a device may act on being opened, a pipe may wait for its writer.
PEEK: Final = getattr(os, "O_PATH", os.O_NONBLOCK) | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
FOLDER: Final = PEEK | os.O_DIRECTORY
MOST_LINKS: Final = 40
GONE: Final = "The folder of the workspace was deleted meanwhile. Nothing can be done in it; tell the person."


@dataclass(frozen=True)
class Opened:
    """An open descriptor with its status; `path` is relative and free of links, `.` for the folder itself."""

    fd: int
    path: str
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Tell whether this is a directory."""
        return stat.S_ISDIR(self.status.st_mode)


@dataclass(frozen=True)
class Place:
    """A name in the open folder `fd`, whatever is or is not there; `path` is relative, its folders free of links."""

    fd: int
    name: str
    path: str

    def status(self) -> os.stat_result | None:
        """Return what is there now, a link as a link; None for nothing."""
        try:
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


class ContainedFolder:
    """Opens paths below `root`, which is held by descriptor: moving or replacing it changes nothing.

    Links are followed while they stay beneath the root. What `denied.py` names is refused under whatever name it is
    reached. Usable from several threads; after `close` the calls still running finish.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        try:
            self._fd = os.open(self.root, FOLDER)
        except FileNotFoundError as error:
            raise PathMissingError("The workspace's folder does not exist.") from error
        except NotADirectoryError as error:
            raise WrongKindError("The workspace is not a folder.") from error
        self._roots = tuple({str(self.root), os.path.realpath(self.root)})
        self._lock = threading.Lock()
        self._users = 1

    @classmethod
    def below(cls, root: Path, relative: str) -> Self:
        """Open the folder `relative` of `root`, itself found by descriptors.

        Raises:
            PathRefusedError: It lies outside of `root`.
            PathMissingError: There is no such folder.
        """
        with cls(root) as outer:
            fd, parts = outer._resolve(relative_parts(relative), FOLDER)
        inner = cls.__new__(cls)
        inner.root = outer.root.joinpath(*parts)
        inner._fd = fd
        inner._roots = tuple({str(inner.root), *(os.path.join(name, *parts) for name in outer._roots)})
        inner._lock = threading.Lock()
        inner._users = 1
        return inner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder as soon as no call runs any more."""
        self._release()

    @contextmanager
    def open(self, path: str) -> Iterator[Opened]:
        """Open a regular file for reading, or a folder for listing, for the length of the block.

        Raises:
            PathRefusedError: It leaves the folder, is denied, or is neither a file nor a folder.
            PathMissingError: There is nothing.
        """
        parts = self.names(path)
        with self._used():
            fd, _ = self._resolve(parts, PEEK)
            try:
                _refuse_special(os.fstat(fd), path)
            finally:
                os.close(fd)
            # The second opening walks again, because what was looked at may have been replaced since.
            fd, found = self._resolve(parts, READ)
            try:
                status = os.fstat(fd)
                _refuse_special(status, path)
                yield Opened(fd, "/".join(found) or ".", status)
            finally:
                os.close(fd)

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names down to `path`; an absolute one lies below the workspace, or below it as commands see it.

        Raises:
            PathRefusedError: As `relative_parts` has it.
        """
        return relative_parts(path, (*self._roots, COMMANDS_ROOT))

    @contextmanager
    def place(self, path: str) -> Iterator[Place]:
        """Open the folder that `path` lies in, to change what has its last name there; no link is followed in that.

        Raises:
            PathRefusedError: It leaves the folder, is denied, or is the folder itself.
            PathProtectedError: Agents may only read it.
            PathMissingError: There is no folder for it to lie in.
        """
        parts = self.names(path)
        if not parts:
            raise PathRefusedError("The top folder of the workspace itself cannot be changed. Name something in it.")
        refuse_changing(parts)
        with self._used():
            fd, above = self._resolve(parts[:-1], READ | os.O_DIRECTORY)
            try:
                found = (*above, parts[-1])
                refuse_changing(found)
                yield Place(fd, parts[-1], "/".join(found))
            finally:
                os.close(fd)

    @contextmanager
    def found(self, path: str) -> Iterator[int]:
        """Give a descriptor of what is at a path that was read from the disk, to name it and not to read it.

        Raises:
            PathRefusedError: It leaves the folder, or is denied.
            PathMissingError: There is nothing any more.
        """
        with self._used():
            fd, _ = self._resolve(tuple(path.split("/")), PEEK)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextmanager
    def descriptor(self) -> Iterator[int]:
        """Give the folder's own descriptor, for those who look at what agents never see."""
        with self._used():
            yield self._fd

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                raise PathRefusedError("The workspace is closed.")
            self._users += 1
        try:
            # Nothing can be found or made in it any more, and each call would blame what it was asked for.
            if os.fstat(self._fd).st_nlink == 0:
                raise PathMissingError(GONE)
            yield
        finally:
            self._release()

    def _release(self) -> None:
        """The last one out closes: a number that is free again could name somebody else's descriptor."""
        with self._lock:
            if self._users == 0:
                return
            self._users -= 1
            if self._users == 0:
                os.close(self._fd)

    def _resolve(self, parts: Sequence[str], flags: int) -> tuple[int, tuple[str, ...]]:
        """Return a descriptor and the names it was really found under."""
        _refuse_denied(parts)
        try:
            if not parts:
                return os.open(".", flags | os.O_DIRECTORY, dir_fd=self._fd), ()
            try:
                return open_beneath(self._fd, "/".join(parts), flags), tuple(parts)
            except Openat2MissingError:
                return self._walk(parts, flags)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                return self._walk(parts, flags)
        except OSError as error:
            raise _refusal(error, "/".join(parts)) from error

    def _walk(self, parts: Sequence[str], flags: int) -> tuple[int, tuple[str, ...]]:
        """Go down name by name and follow links by hand; `..` goes back to a folder we came through."""
        way: list[tuple[str, int]] = []
        pending = deque(parts)
        links = 0
        try:
            while pending:
                name = pending.popleft()
                if name == "..":
                    if not way:
                        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                    os.close(way.pop()[1])
                    continue
                here = way[-1][1] if way else self._fd
                target = _link_target(name, here)
                if target is None:
                    way.append((name, os.open(name, (FOLDER if pending else PEEK) | os.O_NOFOLLOW, dir_fd=here)))
                    _refuse_denied([step for step, _ in way])
                    continue
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                names = [step for step in target.split("/") if step not in ("", ".")]
                if target.startswith("/"):
                    names = list(_below(target, self._roots))
                    while way:
                        os.close(way.pop()[1])
                pending.extendleft(reversed(names))
            found = tuple(name for name, _ in way)
            return self._reopen(way, flags), found
        finally:
            for _, fd in way:
                os.close(fd)

    def _reopen(self, way: Sequence[tuple[str, int]], flags: int) -> int:
        if not way:
            return os.open(".", flags | os.O_DIRECTORY, dir_fd=self._fd)
        above = way[-2][1] if len(way) > 1 else self._fd
        return os.open(way[-1][0], flags | os.O_NOFOLLOW, dir_fd=above)


def _below(target: str, roots: Sequence[str]) -> tuple[str, ...]:
    """Return the names below the folder; an error does not tell where on this machine a link points."""
    try:
        return relative_parts(target, roots)
    except PathRefusedError as error:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV)) from error


def _link_target(name: str, folder: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:  # not a link
            return None
        raise


def _refuse_denied(parts: Sequence[str]) -> None:
    reason = why_denied(parts)
    if reason is not None:
        raise PathRefusedError(f"{shown('/'.join(parts))} is hidden from agents: {reason}.")


def refuse_changing(parts: Sequence[str]) -> None:
    """Raise PathRefusedError for what is hidden from agents, PathProtectedError for what they may only read."""
    _refuse_denied(parts)
    refuse_protected(parts)


def _refuse_special(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise PathRefusedError(f"{shown(path)} is neither a file nor a folder (a pipe, socket, device or broken link).")


def _refusal(error: OSError, path: str) -> PathRefusedError | PathMissingError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return PathMissingError(f"There is no file or folder {shown(path)} in the workspace.")
    if error.errno == errno.EXDEV:
        return PathRefusedError(f"{shown(path)} leads out of the workspace through a link.")
    if error.errno == errno.ELOOP:
        return PathRefusedError(f"{shown(path)} is a link that cannot be followed.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return PathRefusedError(f"{shown(path)} may not be read by the account that popagent runs under.")
    return PathRefusedError(f"{shown(path)} cannot be opened: {os.strerror(error.errno or 0)}.")
