"""Where programs' lines go: a file each, bounded in size, and, in the foreground, the terminal."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_local.state import private_folder

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
OLD_FILES: Final = 2
COLOURS: Final = (36, 32, 35, 34, 33, 96, 92, 95, 94, 93)
RED: Final = 31
DIM: Final = 2


class LogFile:
    """An append-only file that is renamed to `.1`, `.2` when it passes `max_bytes`; the oldest is dropped."""

    def __init__(self, path: Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        private_folder(path.parent)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, line: bytes) -> None:
        """Append one line, its end included."""
        if self._size and self._size + len(line) > self.max_bytes:
            self._rotate()
        self._file.write(line)
        self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(OLD_FILES, 0, -1):
            older = self.path if number == 1 else self.path.with_name(f"{self.path.name}.{number - 1}")
            if older.exists():
                older.replace(self.path.with_name(f"{self.path.name}.{number}"))
        self._file = self.path.open("ab", buffering=0)
        self._size = 0


def tail(path: Path, lines: int) -> list[str]:
    """Return the last `lines` lines; at most the last 256 kB are read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 256 * 1024))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def readable(line: str) -> str:
    """Return a JSON log line as `LEVEL logger: message key=value`; any other line as it is."""
    if not line.startswith("{"):
        return line
    try:
        record: dict[str, Any] = json.loads(line)
        level, logger, message = str(record.pop("level")), record.pop("logger"), record.pop("message")
    except (MalformedJsonError, KeyError):
        return line
    record.pop("at", None)
    trace = f"\n{record.pop('exception')}" if "exception" in record else ""
    pairs = "".join(f" {key}={value}" for key, value in record.items())
    return f"{level.upper()} {logger}: {message}{pairs}{trace}"


def wants_colour(stream: IO[str]) -> bool:
    """Tell whether `stream` is a terminal whose user did not ask for plain text."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


@dataclass
class Terminal:
    """The foreground: progress of `up`, then the programs' lines with their names."""

    stream: IO[str] = field(default_factory=lambda: sys.stdout)
    follow: bool = True
    """Show the programs' own lines too."""
    starting: bool = False
    """Of those, only what may be trouble: the progress of `up` says the rest."""

    def __post_init__(self) -> None:
        self.colour = wants_colour(self.stream)
        self.seen: dict[str, int] = {}
        self.broken = False

    def say(self, text: str = "") -> None:
        """Print a line at once; a terminal that is gone is not an error, the log files go on."""
        if self.broken:
            return
        try:
            self.stream.write(text + "\n")
            self.stream.flush()
        except (BrokenPipeError, OSError, ValueError):
            self.broken = True

    def paint(self, text: str, code: int) -> str:
        """Return `text` in a colour, where colours are wanted."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def done(self, what: str, detail: str, seconds: float) -> None:
        """Report a finished step."""
        self.say(f"  {self.paint('✓', 32)} {what:<24} {detail:<28} {self.paint(f'{seconds:5.1f} s', DIM)}")

    def began(self, what: str) -> None:
        """Report that a longer step begins."""
        self.say(f"  {self.paint('…', DIM)} {what}")

    def warn(self, text: str) -> None:
        """Report what the user should know."""
        self.say(f"  {self.paint('!', RED)} {text}")

    def line(self, name: str, text: str) -> None:
        """Show a program's line."""
        shown = readable(text)
        if self.follow and not (self.starting and NEWS.match(shown)):
            colour = COLOURS[self.seen.setdefault(name, len(self.seen)) % len(COLOURS)]
            prefix = self.paint(f"{name:<16} |", colour)
            for part in shown.splitlines() or [""]:
                self.say(f"{prefix} {part}")


# A log line of a level below warning.
NEWS: Final = re.compile(r"(?:DEBUG|INFO) [\w.]+: ")
# NATS and PostgreSQL tell at length what is not for the terminal; their files keep all of it.
ALARMING: Final = re.compile(r"PANIC: |No space left|\[ERR\]|\[FTL\]")
