"""`popagent logs`: the programs' log files, their end or as they grow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from popagent_kit.errors import NotFoundError
from popagent_local.output import tail

POLL_S: Final = 0.2


def log_files(home: Path, name: str | None = None) -> dict[str, Path]:
    """Return the log files by program.

    Raises:
        NotFoundError: There is none, or none called `name`; the message lists those there are.
    """
    found = {path.stem: path for path in sorted((home / "logs").glob("*.log"))}
    if not found:
        raise NotFoundError(f"There are no logs in {home / 'logs'} yet.")
    if name is None:
        return found
    if name not in found:
        raise NotFoundError(f"There is no log of {name!r}. There are: {', '.join(found)}.", field="service")
    return {name: found[name]}


def last(files: dict[str, Path], lines: int) -> Iterator[tuple[str, str]]:
    """Yield (program, line) of the last lines of each file."""
    for name, path in files.items():
        for line in tail(path, lines):
            yield name, line


class Follower:
    """Reads what is appended to a file, across its rotation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("rb")
        self.file.seek(0, 2)
        self.rest = b""

    def lines(self) -> list[str]:
        """Return the complete lines that came since the last call."""
        data = self.rest + self.file.read()
        if self._rotated():
            self.file.close()
            self.file = self.path.open("rb")
            data += self.file.read()
        *complete, self.rest = data.split(b"\n")
        return [line.decode("utf-8", "replace") for line in complete]

    def _rotated(self) -> bool:
        try:
            return self.path.stat().st_ino != _inode(self.file)
        except FileNotFoundError:
            return False


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def follow(files: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield (program, line) as lines are written, for ever."""
    followers = {name: Follower(path) for name, path in files.items()}
    while True:
        for name, follower in followers.items():
            for line in follower.lines():
                yield name, line
        time.sleep(POLL_S)
