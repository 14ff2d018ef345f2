"""The bound on programs at once where the usual one does not hold: RLIMIT_NPROC never counts root's.

Counting from outside is too slow for programs that multiply: they take the processor from who counts. The kernel's pids
controller refuses the next one instead, in version 1 and 2 of control groups. Version 2 allows it beside processes of
ours only in a threaded group, which is what this controller is made for.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

log = logging.getLogger(__name__)

ROOT: Final = Path("/sys/fs/cgroup")
PREFIX: Final = "popagent-"
_VERSION_1: Final = re.compile(r"^\d+:(?:[^:]*,)?pids(?:,[^:]*)?:(/.*)$", re.MULTILINE)
_VERSION_2: Final = re.compile(r"^0::(/.*)$", re.MULTILINE)


class ProcessGroup:
    """A control group that holds a sandbox and at most so many tasks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remove(self) -> None:
        """Remove it; call this once all that was in it has ended."""
        with suppress(OSError):  # something is ending still: whoever makes the next one removes it
            self._folder.rmdir()


def bounded(pid: int, most: int) -> ProcessGroup | None:
    """Put the process, with all that it will start, below a bound of `most` tasks; None where root may not."""
    for parent, threaded in _parents():
        _remove_left(parent)
        folder = parent / f"{PREFIX}{uuid4().hex}"
        try:
            folder.mkdir()
            if threaded:
                _write(folder / "cgroup.type", "threaded")
                _write(parent / "cgroup.subtree_control", "+pids")
            _write(folder / "pids.max", str(most))
            _write(folder / "cgroup.procs", str(pid))
        except OSError as error:
            log.info("no control group for a sandbox", extra={"reason": str(error)})
            with suppress(OSError):
                folder.rmdir()
        else:
            return ProcessGroup(folder)
    return None


def _parents() -> list[tuple[Path, bool]]:
    """Return where groups could be made, and whether they must be threaded there."""
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return []
    first, second = _VERSION_1.search(own), _VERSION_2.search(own)
    found = [(ROOT / "pids" / first[1].lstrip("/"), False)] if first else []
    return found or ([(ROOT / second[1].lstrip("/"), True)] if second else [])


def _remove_left(parent: Path) -> None:
    """Remove the groups of commands whose process was killed; those in use are not empty and stay."""
    with suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                folder.rmdir()


def _write(file: Path, text: str) -> None:
    with open(file, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags | os.O_CLOEXEC)) as opened:
        opened.write(text)
