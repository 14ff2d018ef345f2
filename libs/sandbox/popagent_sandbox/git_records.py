"""From what git writes, NUL after NUL, to changes, commits and branches; texts are made harmless and cut here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from popagent_sandbox.denied import why_denied
from popagent_sandbox.paths import printable
from popagent_telemetry import cut_redacted

LONGEST_LINE: Final = 500
LONGEST_NAME: Final = 200

Kind = Literal["added", "modified", "deleted", "renamed", "type changed", "conflict", "new"]
_KINDS: Final[dict[str, Kind]] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "added",
    "T": "type changed",
    "U": "conflict",
}


@dataclass(frozen=True)
class Change:
    """A file that differs; `before` is its name of before a rename. Lines are None for a binary file, or not counted.

    `new` means that git does not know the file yet.
    """

    path: str
    kind: Kind
    before: str | None = None
    added: int | None = None
    deleted: int | None = None


@dataclass(frozen=True)
class Commit:
    """`at` is the author's time, RFC 3339; `message` is only set where one commit was asked for."""

    id: str
    short_id: str
    at: str
    author: str
    subject: str
    parents: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Branch:
    """A branch, with its last commit; remote ones are named with their remote, as `origin/main`."""

    name: str
    current: bool
    commit: str
    at: str
    subject: str


def records(data: bytes) -> Iterator[str]:
    """Yield what stands between the NULs; a last record that was cut off is dropped."""
    pieces = data.split(b"\0")
    for piece in pieces[:-1]:
        yield os.fsdecode(piece)


def status_changes(records: Iterator[str]) -> Iterator[Change]:
    """Yield what `git status --porcelain=v2 -z` tells."""
    for record in records:
        kind, _, rest = record.partition(" ")
        if kind == "?":
            yield Change(rest, "new")
        elif kind == "u":
            yield Change(rest.split(" ", 9)[-1], "conflict")
        elif kind == "1":
            yield Change(rest.split(" ", 7)[-1], _kind_of(rest[:2]))
        elif kind == "2":
            yield Change(rest.split(" ", 8)[-1], "renamed", before=next(records, ""))


def _kind_of(letters: str) -> Kind:
    """Return what became of a file from its letters in the index and in the working tree."""
    for letter in ("D", "A", "R", "T"):
        if letter in letters:
            return _KINDS[letter]
    return "modified"


def raw_changes(records: Iterator[str]) -> Iterator[Change]:
    """Join the two lists that git writes one after the other: kinds, then counted lines, by path."""
    changes: dict[str, Change] = {}
    counts: dict[str, tuple[int | None, int | None]] = {}
    for record in records:
        if record.startswith(":"):
            letter = record.rpartition(" ")[2][:1]
            before = next(records, "") if letter in ("R", "C") else None
            path = next(records, "")
            changes[path] = Change(path, _KINDS.get(letter, "modified"), before)
            continue
        added, _, rest = record.partition("\t")
        deleted, _, path = rest.partition("\t")
        if not path:
            next(records, "")
            path = next(records, "")
        counts[path] = (_number(added), _number(deleted))
    for path, change in changes.items():
        more, less = counts.get(path, (None, None))
        yield Change(path, change.kind, change.before, more, less)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def visible(changes: Iterator[Change]) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the changes that agents may see, and those they may not."""
    seen: list[Change] = []
    hidden: list[Change] = []
    for change in changes:
        (hidden if any(map(_is_hidden, names_of((change,)))) else seen).append(change)
    return tuple(seen), tuple(hidden)


def names_of(changes: Iterable[Change]) -> set[str]:
    """Return every path in it, those of before a rename too."""
    return {name for change in changes for name in (change.path, change.before) if name}


def _is_hidden(path: str) -> bool:
    return why_denied(path.rstrip("/").split("/")) is not None


def commit_from(record: str, parents: tuple[str, ...] = (), message: str = "") -> Commit:
    """Return the commit of id, short id, time, author and subject, with \\x1f between them."""
    commit, short, at, author, rest = record.strip("\0\n").split("\x1f", 4)
    return Commit(commit, short, at, _one(author, 80), _one(rest.partition("\x1f")[0], 160), parents, message)


def branch_from(record: str, current: str | None) -> Branch:
    """Return the branch of ref, id, time and subject, with \\x1f between them."""
    ref, commit, at, subject = record.split("\x1f", 3)
    name = ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")
    is_current = current is not None and ref == f"refs/heads/{current}"
    return Branch(_one(name, LONGEST_NAME), is_current, commit, at, _one(subject, 160))


def _one(text: str, limit: int) -> str:
    return cut_redacted(" ".join(printable(text).split()), limit)


def harmless_lines(text: str) -> str:
    """Return the text with long lines cut, and with nothing in it that moves a cursor."""
    return "\n".join(cut_redacted(_harmless(line), LONGEST_LINE) for line in text.removesuffix("\n").split("\n"))


def _harmless(line: str) -> str:
    line = line.removesuffix("\r")
    return line if line.isprintable() else "\t".join(printable(piece) for piece in line.split("\t"))


def text_of(data: bytes) -> str:
    """Return text, whatever the bytes are."""
    return data.decode("utf-8", "replace")
