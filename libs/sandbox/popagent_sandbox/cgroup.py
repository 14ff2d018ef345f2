"""The bound on programs at once where the usual one does not hold: RLIMIT_NPROC never counts root's.

Counting from outside is too slow for programs that multiply: they take the processor from who counts. The kernel's pids
controller refuses the next one instead, in version 1 and 2 of control groups. Version 2 allows it beside processes of
ours only in a threaded group, which is what this controller is made for.
"""

from __future__ import annotations

import fcntl
import functools
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

log = logging.getLogger(__name__)

ROOT: Final = Path("/sys/fs/cgroup")
PREFIX: Final = "popagent-"
_VERSION_1: Final = re.compile(r"^\d+:(?:[^:]*,)?pids(?:,[^:]*)?:(/.*)$", re.MULTILINE)
_VERSION_2: Final = re.compile(r"^0::(/.*)$", re.MULTILINE)


class ControlGroup:
    """A control group that holds a sandbox and at most so many tasks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remove(self) -> None:
        """Remove it; call this once all that was in it has ended."""
        with suppress(OSError):  # something is ending still: whoever makes the next one removes it
            self._folder.rmdir()


def bounded(pid: int, most: int) -> ControlGroup | None:
    """Put the process, with all that it will start, below a bound of `most` tasks; None where root may not.

    It blocks while the kernel moves the process, a tenth of a second on a busy machine.
    """
    folder: Path | None = None
    try:
        parent, threaded = _parent()
        with _alone(parent):
            _remove_left(parent)
            folder = parent / f"{PREFIX}{uuid4().hex}"
            folder.mkdir()
            if threaded:
                _write(folder / "cgroup.type", "threaded")
                _write(parent / "cgroup.subtree_control", "+pids")
            _write(folder / "pids.max", str(most))
            _write(folder / "cgroup.procs", str(pid))
            return ControlGroup(folder)
    except OSError as error:
        _note_missing(error.strerror or str(error))
        if folder is not None:
            ControlGroup(folder).remove()
        return None


def _parent() -> tuple[Path, bool]:
    """Return where groups could be made, and whether they must be threaded there."""
    own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    if first := _VERSION_1.search(own):
        return ROOT / "pids" / first[1].lstrip("/"), False
    if second := _VERSION_2.search(own):
        return ROOT / second[1].lstrip("/"), True
    raise FileNotFoundError("this kernel has no control groups")


@contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """Make groups one after the other, of whatever process: one that nothing is in yet looks like one that was left."""
    held = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _remove_left(parent: Path) -> None:
    """Remove the groups of commands whose process was killed; those in use are not empty and stay."""
    for folder in parent.glob(f"{PREFIX}*"):
        ControlGroup(folder).remove()


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="ascii")


@functools.cache
def _note_missing(reason: str) -> None:
    """Say it once a process, not at every command."""
    log.info("no control group for a sandbox", extra={"reason": reason})
