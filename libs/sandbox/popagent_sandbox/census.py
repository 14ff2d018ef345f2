"""Who lives in a sandbox and how much memory they use, read from outside through its own view of processes."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from itertools import islice
from typing import Final

LARGEST_STATUS_BYTES: Final = 8_192
# The kernel goes through every page for it; whoever is left then counts with all that they see.
LONGEST_SHARING_S: Final = 1.0
# While this many are read, programs that multiply may have become too many.
READ_AT_ONCE: Final = 64
_OWN: Final = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)
_SHARED: Final = re.compile(rb"^RssShmem:\s+(\d+) kB", re.MULTILINE)
# A page that several programs have counts in each of them by its part.
_PARTS: Final = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Count:
    """`memory_bytes` is an upper bound: what programs share is counted for each of them."""

    processes: int = 0
    memory_bytes: int = 0


class Census:
    """Counts the processes of the namespace whose first process is `pid` here."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._proc: int | None = None
        self._ours = os.stat("/proc").st_dev

    def close(self) -> None:
        """Let go of the sandbox."""
        if self._proc is not None:
            os.close(self._proc)
            self._proc = None

    def take(self, most: int) -> Count:
        """Return who is there now; nobody while the sandbox is being set up and when all have ended.

        Nobody is looked at, and no more than one above `most` are counted, when there are more than that: programs
        that multiply take the processor from who looks at each of them.
        """
        if self._proc is None and not self._found():
            return Count()
        kilobytes = 0
        names = self._names(most)
        for number, name in enumerate(names):
            if number % READ_AT_ONCE == 0 and len(now := self._names(most)) > most:
                return Count(len(now))
            kilobytes += self._seen_by(name)
        return Count(len(names), kilobytes * 1024)

    def memory_bytes(self, most: int) -> int:
        """Return how much memory up to `most` of them use, with what they share counted once; takes up to a second."""
        until = time.monotonic() + LONGEST_SHARING_S
        kilobytes = 0
        for name in self._names(most):
            parts = _PARTS.findall(self._read(name, "smaps_rollup")) if time.monotonic() < until else []
            kilobytes += sum(map(int, parts)) if parts else self._seen_by(name)
        return kilobytes * 1024

    def _seen_by(self, name: str) -> int:
        status = self._read(name, "status")
        return _kilobytes(_OWN, status) + _kilobytes(_SHARED, status)

    def _names(self, most: int) -> list[str]:
        """Return the names of those who are there, of one more than `most` at most."""
        assert self._proc is not None
        try:
            with os.scandir(self._proc) as entries:
                return list(islice((entry.name for entry in entries if entry.name.isdigit()), most + 1))
        except OSError:
            return []

    def _found(self) -> bool:
        """Tell whether the sandbox has its own view of processes by now; before that one would count this machine's."""
        try:
            proc = os.open(f"/proc/{self._pid}/root/proc", _FOLDER)
        except OSError:
            return False
        if os.fstat(proc).st_dev == self._ours:
            os.close(proc)
            return False
        self._proc = proc
        return True

    def _read(self, name: str, what: str) -> bytes:
        try:
            fd = os.open(f"{name}/{what}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return b""
        try:
            return os.read(fd, LARGEST_STATUS_BYTES)
        except OSError:
            return b""
        finally:
            os.close(fd)


def _kilobytes(pattern: re.Pattern[bytes], status: bytes) -> int:
    found = pattern.search(status)
    return int(found[1]) if found else 0
