"""Who lives in a sandbox and how much memory they use, read from outside through its own view of processes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

LARGEST_STATUS_BYTES: Final = 8_192
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

    def take(self) -> Count:
        """Return who is there now; nobody while the sandbox is being set up and when all have ended."""
        if self._proc is None and not self._found():
            return Count()
        assert self._proc is not None
        try:
            names = [name for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:
            return Count()
        own = shared = 0
        for name in names:
            status = self._status(name)
            own += _kilobytes(_OWN, status)
            shared = max(shared, _kilobytes(_SHARED, status))
        return Count(len(names), (own + shared) * 1024)

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
