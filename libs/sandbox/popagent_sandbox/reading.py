"""Read a text file by lines, bounded, with the hash that a later write must still find."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from popagent_sandbox.contained import ContainedFolder, Opened
from popagent_sandbox.errors import UnreadableFileError, WrongKindError
from popagent_sandbox.paths import shown
from popagent_telemetry import cut_redacted, without_private_keys

LARGEST_FILE_BYTES: Final = 16 * 1024 * 1024
LONGEST_LINE: Final = 2_000
MOST_LINES: Final = 2_000
# A NUL this early in a file means that it is not text; UTF-16 is counted as binary, too.
PROBE_BYTES: Final = 8_192


@dataclass(frozen=True)
class FileText:
    """Lines `first_line` to `last_line` (from 1, inclusive; `last_line` is 0 for none) of `total_lines`."""

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int
    size_bytes: int
    sha256: str
    lines_cut: int

    @property
    def complete(self) -> bool:
        """Tell whether this is the whole file, every line in full."""
        return self.first_line <= 1 and self.last_line == self.total_lines and self.lines_cut == 0


@dataclass(frozen=True)
class PathInfo:
    """What is at a path; `path` is where links led to."""

    path: str
    kind: Literal["file", "folder"]
    size_bytes: int
    modified_at: datetime


def stat_path(folder: ContainedFolder, path: str) -> PathInfo:
    """Return kind, size and time of change of a file or folder."""
    with folder.open(path) as opened:
        return PathInfo(
            path=opened.path,
            kind="folder" if opened.is_folder else "file",
            size_bytes=opened.status.st_size,
            modified_at=datetime.fromtimestamp(opened.status.st_mtime, UTC),
        )


def read_text(
    folder: ContainedFolder,
    path: str,
    *,
    offset: int = 1,
    limit: int = MOST_LINES,
    characters: int = 256_000,
) -> FileText:
    """Return at most `limit` lines from line `offset` and at most `characters` of them, whole lines only.

    Lines are cut at LONGEST_LINE characters; bytes that are not UTF-8 become the replacement character. Private keys
    are redacted here, where the whole file is known: their single lines look like any other text.

    Raises:
        UnreadableFileError: The file is binary or larger than LARGEST_FILE_BYTES.
        WrongKindError: It is a folder.
    """
    with folder.open(path) as opened:
        content = read_bytes(opened, LARGEST_FILE_BYTES)
        found = opened.path
    if is_binary(content):
        raise UnreadableFileError(f"{shown(found)} is a binary file of {len(content)} bytes.")
    lines = without_private_keys(content).decode("utf-8-sig", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    first = max(1, offset)
    kept: list[str] = []
    cut = used = 0
    for line in lines[first - 1 : first - 1 + max(0, min(limit, MOST_LINES))]:
        text = line.removesuffix("\r")
        used += min(len(text), LONGEST_LINE) + 1
        if used > characters and kept:
            break
        cut += len(text) > LONGEST_LINE
        kept.append(cut_redacted(text, LONGEST_LINE))
    return FileText(
        path=found,
        text="\n".join(kept),
        first_line=first,
        last_line=first - 1 + len(kept) if kept else 0,
        total_lines=len(lines),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        lines_cut=cut,
    )


def read_bytes(opened: Opened, largest: int) -> bytes:
    """Return the whole file.

    Raises:
        WrongKindError: It is a folder.
        UnreadableFileError: It has, or grows to, more than `largest` bytes.
    """
    if opened.is_folder:
        raise WrongKindError(f"{shown(opened.path)} is a folder, not a file.")
    if opened.status.st_size > largest:
        raise UnreadableFileError(
            f"{shown(opened.path)} has {opened.status.st_size} bytes; files up to {largest} bytes can be read."
        )
    content = bytearray()
    while chunk := os.read(opened.fd, 1024 * 1024):
        content += chunk
        if len(content) > largest:
            raise UnreadableFileError(f"{shown(opened.path)} grew past {largest} bytes while it was read.")
    return bytes(content)


def is_binary(content: bytes) -> bool:
    """Tell whether the beginning of a file says that it is not text."""
    return b"\0" in content[:PROBE_BYTES]
