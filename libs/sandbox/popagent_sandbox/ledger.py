"""What one agent run has seen of its files: who has not read a file as it is now may not change it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from popagent_sandbox.reading import FileText

# A run that reads more files forgets the one it read first, and has to read that again before changing it.
MOST_FILES: Final = 10_000


@dataclass(frozen=True)
class _Known:
    sha256: str
    whole: bool
    spans: tuple[tuple[int, int], ...] = ()


class ReadLedger:
    """Paths without links, each with the hash of the content that was read. Usable from several threads.

    It belongs to one run of one agent: what another agent of the same turn has read or written counts for that one.
    """

    def __init__(self) -> None:
        self._files: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def saw(self, read: FileText) -> None:
        """Note a read; reads of parts of the same content add up."""
        with self._lock:
            known = self._files.pop(read.path, None)
            same = known is not None and known.sha256 == read.sha256
            spans = known.spans if known is not None and same else ()
            if read.last_line and not read.lines_cut:
                spans = _joined((*spans, (read.first_line, read.last_line)))
            whole = (known is not None and same and known.whole) or read.complete or spans == ((1, read.total_lines),)
            self._keep(read.path, _Known(read.sha256, whole, spans))

    def wrote(self, path: str, sha256: str, *, whole: bool) -> None:
        """Note what the run itself made of a file; `whole` says that it knows all of it."""
        with self._lock:
            self._files.pop(path, None)
            self._keep(path, _Known(sha256, whole))

    def sha256_of(self, path: str) -> str | None:
        """Return the hash of what the run knows at the path, None when it has read nothing there."""
        known = self._files.get(path)
        return None if known is None else known.sha256

    def knows_whole(self, path: str) -> bool:
        """Tell whether every line of the file was seen."""
        known = self._files.get(path)
        return known is not None and known.whole

    def forget(self, path: str) -> None:
        """Drop a path and everything below it."""
        with self._lock:
            for name in [name for name in self._files if _below(name, path)]:
                del self._files[name]

    def moved(self, source: str, target: str) -> None:
        """Follow a file or folder to its new path."""
        with self._lock:
            for name in [name for name in self._files if _below(name, source)]:
                self._files[target + name[len(source) :]] = self._files.pop(name)

    def _keep(self, path: str, known: _Known) -> None:
        self._files[path] = known
        if len(self._files) > MOST_FILES:
            del self._files[next(iter(self._files))]


def _below(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")


def _joined(spans: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
