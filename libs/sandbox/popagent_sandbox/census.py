"""Who lives in a sandbox and how much memory they use, read from outside through its own view of processes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import islice
from typing import Final

LARGEST_STATUS_BYTES: Final = 8_192
# While this many are read, programs that multiply may have become too many.
READ_AT_ONCE: Final = 64
_OWN: Final = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)
_SHARED: Final = re.compile(rb"^RssShmem:\s+(\d+) kB", re.MULTILINE)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Count:
    """Memory that programs share is counted once, as the most that one of them sees."""

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
        own = shared = 0
        names = self._names(most)
        for number, name in enumerate(names):
            if number % READ_AT_ONCE == 0 and len(now := self._names(most)) > most:
                return Count(len(now))
            status = self._status(name)
            own += _kilobytes(_OWN, status)
            shared = max(shared, _kilobytes(_SHARED, status))
        return Count(len(names), (own + shared) * 1024)

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

    def _status(self, name: str) -> bytes:
        try:
            fd = os.open(f"{name}/status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
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
