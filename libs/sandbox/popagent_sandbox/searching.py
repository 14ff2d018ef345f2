"""Search text files with a regular expression that always runs in linear time."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, Literal

import re2

from popagent_kit.errors import InvalidInputError
from popagent_sandbox.contained import READ, ContainedFolder, Opened
from popagent_sandbox.errors import UnreadableFileError
from popagent_sandbox.listing import Entry, names_in, subfolder
from popagent_sandbox.reading import is_binary, read_bytes
from popagent_telemetry import REDACTED, redact, without_private_keys

LONGEST_PATTERN: Final = 1_000
LARGEST_FILE_BYTES: Final = 4 * 1024 * 1024
MOST_FILES: Final = 50_000
DEEPEST: Final = 40
SHOWN_LINE: Final = 240
LONGEST_SECRET: Final = 4_096
# re2 compiles a pattern to instructions; searching costs at most instructions times bytes, about 8 ns each. A line is
# searched as far as this budget goes, so that no pattern holds a thread for more than about half a second.
LARGEST_PROGRAM: Final = 6_000
LINE_BUDGET: Final = 60_000_000
_TEXT_ENDS: Final = re2.compile(rb"\\[AzZ]|\(\?[A-Za-z]*-")

Ending = Literal["", "limit", "time", "files", "stopped"]


@dataclass(frozen=True)
class Match:
    """One line that matched, cut around the match to SHOWN_LINE characters."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class SearchResult:
    """What was found; `ended` says why the search ended early, empty when it went through everything.

    `literal` is true when the pattern was no valid expression and was searched as plain text.
    """

    matches: tuple[Match, ...]
    files: int
    too_large: int
    ended: Ending
    literal: bool


class Pattern:
    """A compiled expression. Without an upper-case letter in it, case is ignored."""

    def __init__(self, text: str) -> None:
        """Compile `text`, as plain text when it is no valid expression.

        Raises:
            InvalidInputError: It is empty, too long, or compiles to too many instructions.
        """
        if not text or len(text) > LONGEST_PATTERN:
            raise InvalidInputError(f"A pattern has 1 to {LONGEST_PATTERN} characters.", field="pattern")
        options = re2.Options()
        options.log_errors = False
        options.never_nl = True
        options.case_sensitive = any(char.isupper() for char in text)
        self.literal = False
        source = text.encode("utf-8", "replace")
        try:
            self._compiled = re2.compile(source, options)
        except re2.error:
            options.literal = True
            self.literal = True
            self._compiled = re2.compile(source, options)
        size = int(self._compiled.programsize)
        if size > LARGEST_PROGRAM:
            raise InvalidInputError("This pattern is too complex. Use a shorter one, with smaller repeats.")
        self._longest = LINE_BUDGET // max(1, size)
        self._anywhere = self._compiled if self.literal else _by_lines(source, options)

    def may_occur(self, content: bytes) -> bool:
        """Tell, by one search through all of it, whether any line can match; True where that cannot be told."""
        if self._anywhere is None or len(content) > self._longest:
            return True
        if b"\r" in content:
            content = content.replace(b"\r\n", b"\n").removesuffix(b"\r")
        return self._anywhere.search(content) is not None

    def find(self, line: bytes) -> tuple[int, int] | None:
        """Return where the line matches first, in bytes; a very long line is searched in part."""
        match = self._compiled.search(line if len(line) <= self._longest else line[: self._longest])
        return None if match is None else match.span()


def _by_lines(source: bytes, options: re2.Options) -> re2._Regexp[bytes] | None:
    """Return the expression for whole files; None for one that speaks of the ends of a text, which each line has."""
    if _TEXT_ENDS.search(source) is not None:
        return None
    try:
        return re2.compile(b"(?m:" + source + b")", options)
    except re2.error:
        return None


def grep(
    folder: ContainedFolder,
    pattern: str,
    path: str = ".",
    *,
    limit: int = 100,
    limit_per_file: int = 20,
    time_s: float = 5.0,
    stopped: Callable[[], bool] = lambda: False,
) -> SearchResult:
    """Return the first `limit` matching lines below `path`, files in order of their names.

    Binary files, files over LARGEST_FILE_BYTES, links, hidden files and SKIPPED_FOLDERS are passed over. For a single
    file `limit_per_file` does not count. `stopped` is asked between files and every thousand lines.
    """
    search = _Search(Pattern(pattern), limit, time.monotonic() + time_s, stopped)
    with folder.open(path) as opened:
        if not opened.is_folder:
            search.file(opened, limit)
        else:
            for file in _files(opened):
                search.file(file, limit_per_file)
                if search.ended:
                    break
    return SearchResult(tuple(search.matches), search.files, search.too_large, search.ended, search.pattern.literal)


class _Search:
    def __init__(self, pattern: Pattern, limit: int, deadline: float, stopped: Callable[[], bool]) -> None:
        self.pattern = pattern
        self.limit = limit
        self.deadline = deadline
        self.stopped = stopped
        self.matches: list[Match] = []
        self.files = 0
        self.too_large = 0
        self.ended: Ending = ""

    def file(self, opened: Opened, limit: int) -> None:
        self.ended = self._over()
        if self.ended:
            return
        try:
            content = read_bytes(opened, LARGEST_FILE_BYTES)
        except UnreadableFileError:
            self.too_large += 1
            return
        self.files += 1
        if is_binary(content) or not self.pattern.may_occur(content):
            return
        found = 0
        for number, line in enumerate(without_private_keys(content).split(b"\n"), start=1):
            if number % 1_000 == 0 or len(line) > 100_000:
                self.ended = self._over()
                if self.ended:
                    return
            span = self.pattern.find(line.removesuffix(b"\r"))
            if span is None:
                continue
            if len(self.matches) >= self.limit:
                self.ended = "limit"
                return
            self.matches.append(Match(opened.path, number, self._shown(line, span)))
            found += 1
            if found >= limit and limit < self.limit:
                return

    def _shown(self, line: bytes, span: tuple[int, int]) -> str:
        """Return the line around the match; a long one is redacted before it is cut, since half a secret is text."""
        if len(line) <= SHOWN_LINE:
            return around(line, span)
        window = line[max(0, span[0] - LONGEST_SECRET) : span[0] + 4 * SHOWN_LINE + LONGEST_SECRET]
        text = window.decode("utf-8", "replace")
        safe = redact(text)
        if safe == text:
            return around(line, span)
        found = self.pattern.find(safe.encode())
        return REDACTED if found is None else around(safe.encode(), found)

    def _over(self) -> Ending:
        if self.stopped():
            return "stopped"
        if time.monotonic() > self.deadline:
            return "time"
        return "files" if self.files >= MOST_FILES else ""


def _files(opened: Opened) -> Iterator[Opened]:
    """Yield every regular file below the folder; its descriptor lives until the next one is asked for."""
    pending: list[tuple[str, int]] = [(opened.path, 0)]
    while pending:
        path, depth = pending.pop()
        with subfolder(opened.fd, opened.path, path) if depth else nullcontext(opened.fd) as fd:
            if fd is None:
                continue
            entries = names_in(fd, path).entries
            for entry in entries:
                if entry.kind == "file":
                    yield from _opened(fd, entry)
        if depth < DEEPEST:
            folders = [entry.path for entry in entries if entry.kind == "folder" and not entry.skipped]
            pending.extend((name, depth + 1) for name in reversed(folders))


def _opened(folder: int, entry: Entry) -> Iterator[Opened]:
    try:
        fd = os.open(entry.path.rsplit("/", 1)[-1], READ | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        # Gone, replaced by a link or not ours to read since it was listed: there is nothing to search.
        return
    try:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            yield Opened(fd, entry.path, status)
    finally:
        os.close(fd)


def around(line: bytes, span: tuple[int, int]) -> str:
    """Return the line as text, cut to SHOWN_LINE characters around the match."""
    text = line.removesuffix(b"\r").decode("utf-8", "replace").strip()
    if len(text) <= SHOWN_LINE:
        return text
    before = line[max(0, span[0] - 80) : span[0]].decode("utf-8", "replace").lstrip()
    rest = line[span[0] : span[0] + 4 * SHOWN_LINE].decode("utf-8", "replace")
    cut = f"…{before}{rest}" if span[0] > 80 else f"{before}{rest}"
    return cut[: SHOWN_LINE - 1] + "…"
