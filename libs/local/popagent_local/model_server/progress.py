"""Progress of a long download: a bar on a terminal, else one line for each tenth."""

from __future__ import annotations

import sys
import time
from typing import Final, Protocol, TextIO

BAR_WIDTH: Final = 30
REDRAW_S: Final = 0.1


class Progress(Protocol):
    """Where a pull reports to; all figures are bytes."""

    def start(self, title: str, total: int) -> None:
        """Begin a file of `total` bytes."""

    def at(self, done: int) -> None:
        """Say how many bytes of the file are there now; may go back when a source has to begin anew."""

    def finish(self) -> None:
        """End the file begun last."""

    def note(self, text: str) -> None:
        """Say one sentence, such as why a source was left."""


class Quiet:
    """Progress that nobody watches."""

    def start(self, title: str, total: int) -> None:
        """Ignore."""

    def at(self, done: int) -> None:
        """Ignore."""

    def finish(self) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""


class Meter:
    """Progress as text on `stream`, standard error unless given."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream if stream is not None else sys.stderr
        self.is_terminal = self.stream.isatty()
        self.title = ""
        self.total = 0
        self.done = 0
        self.tenth = 0
        self.drawn_at = 0.0
        self.began_at = 0.0

    def start(self, title: str, total: int) -> None:
        """Name the file and its size."""
        self.title, self.total, self.done, self.tenth = title, max(1, total), 0, 0
        self.began_at, self.drawn_at = time.monotonic(), 0.0
        if not self.is_terminal:
            self._line(f"{title}: {_megabytes(total)}")

    def at(self, done: int) -> None:
        """Redraw at most ten times a second, or write a line when another tenth is complete."""
        self.done = done
        if self.is_terminal:
            if time.monotonic() - self.drawn_at >= REDRAW_S or done >= self.total:
                self._draw()
            return
        tenth = done * 10 // self.total
        if tenth > self.tenth:
            self.tenth = tenth
            self._line(f"{self.title}: {min(tenth, 10) * 10} %")

    def finish(self) -> None:
        """Complete the bar, and go to the next line."""
        seconds = time.monotonic() - self.began_at
        if self.is_terminal:
            self._draw()
            self.stream.write("\n")
        self._line(f"{self.title}: ready after {seconds:.0f} s")

    def note(self, text: str) -> None:
        """Write `text` on a line of its own."""
        if self.is_terminal:
            self.stream.write("\r\x1b[K")
        self._line(text)

    def _draw(self) -> None:
        self.drawn_at = time.monotonic()
        share = min(1.0, self.done / self.total)
        bar = "█" * round(share * BAR_WIDTH)
        size = f"{_megabytes(self.done)} of {_megabytes(self.total)}"
        self.stream.write(f"\r\x1b[K{self.title} [{bar:░<{BAR_WIDTH}}] {share:4.0%} {size}")
        self.stream.flush()

    def _line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 10_000_000 else f"{size / 1e6:,.1f} MB"
