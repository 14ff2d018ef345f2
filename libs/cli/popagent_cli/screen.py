"""The terminal while an answer comes: the answer on standard output, everything about it on standard error."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import IO, Final, Self

from popagent_cli.printing import dim, fit

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_S: Final = 0.1
ERASE: Final = "\r\x1b[2K"


class Screen:
    """Writes whole things in order; while nothing is written, a line says what is waited for. Any thread may call."""

    def __init__(self, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err
        self._shared = self._out.isatty() and self._err.isatty()  # one screen for both
        self._spins = self._err.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.Lock()
        self._unfinished: set[int] = set()  # streams (by id) whose last line has no end yet
        self._label = ""
        self._since = 0.0
        self._drawn = False
        self._closed = threading.Event()
        self._spinner: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def text(self, text: str) -> None:
        """Go on with the answer."""
        self._write(self._out, text, text)

    def aside(self, text: str) -> None:
        """Go on with something about the answer, in the weaker colour."""
        self._write(self._err, text, dim(text, self._err))

    def note(self, text: str) -> None:
        """Write a line about the answer."""
        with self._lock:
            self._erase()
            self._end_lines()
            self._put(self._err, dim(text, self._err) + "\n")

    def end_line(self) -> None:
        """End the line under way, if any."""
        with self._lock:
            self._erase()
            self._end_lines()

    def waiting(self, label: str) -> None:
        """Say what is waited for from now on, with the seconds; nothing when `label` is empty."""
        with self._lock:
            if label != self._label:
                self._label, self._since = label, time.monotonic()
            if not label:
                self._erase()
        if label and self._spins and self._spinner is None:
            self._spinner = threading.Thread(target=self._spin, daemon=True)
            self._spinner.start()

    def close(self) -> None:
        """Leave the terminal at the beginning of a line."""
        self._closed.set()
        if self._spinner is not None:
            self._spinner.join()
        self.end_line()

    def _write(self, stream: IO[str], plain: str, painted: str) -> None:
        if not plain:
            return
        with self._lock:
            self._erase()
            self._label = ""
            if self._shared:
                self._end_lines(but=stream)
            self._put(stream, painted)
            (self._unfinished.discard if plain.endswith("\n") else self._unfinished.add)(id(stream))

    def _end_lines(self, but: IO[str] | None = None) -> None:
        for stream in (self._out, self._err):
            if stream is not but and id(stream) in self._unfinished:
                self._unfinished.discard(id(stream))
                self._put(stream, "\n")

    def _put(self, stream: IO[str], text: str) -> None:
        stream.write(text)
        stream.flush()

    def _spin(self) -> None:
        frame = 0
        while not self._closed.wait(FRAME_S):
            with self._lock:
                blocked = self._unfinished if self._shared else self._unfinished & {id(self._err)}
                if not self._label or blocked:
                    continue
                frame += 1
                try:
                    self._draw(FRAMES[frame % len(FRAMES)])
                except OSError:  # the terminal is gone; the command notices at its next line
                    return

    def _draw(self, frame: str) -> None:
        line = f"{frame} {self._label}… {time.monotonic() - self._since:.0f} s"
        columns = os.get_terminal_size(self._err.fileno()).columns
        self._put(self._err, ERASE + dim(fit(line, max(columns - 1, 1)), self._err))
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._drawn = False
            self._put(self._err, ERASE)
