"""List a folder, breadth first, as far as the limit goes; and the one walk that listing and search share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from popagent_kit.errors import AppError
from popagent_sandbox.contained import READ, ContainedFolder
from popagent_sandbox.denied import why_denied
from popagent_sandbox.errors import WrongKindError
from popagent_sandbox.paths import shown

Kind = Literal["folder", "file", "link", "special"]
# Names; a folder with more is listed in part, in the order the file system gives.
MOST_NAMES: Final = 20_000
# Generated or vendored trees, not expanded and not searched. `.gitignore` is not read: its full rules need git, and
# git reads a repository's configuration. A file that is ignored there is still found here.
SKIPPED_FOLDERS: Final = frozenset(
    {
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".import_linter_cache",
        ".gradle",
        ".terraform",
        ".next",
        ".cache",
        "target",
        "dist",
        "build",
        ".idea",
    }
)


@dataclass(frozen=True)
class Entry:
    """One name below the listed folder; `path` is relative to the workspace."""

    path: str
    kind: Kind
    size_bytes: int
    skipped: bool = False


@dataclass(frozen=True)
class Listing:
    """Entries in order of depth, folders first; `hidden` were denied, `complete` says that none was left out for room.

    `depth` is the number of levels shown.
    """

    path: str
    entries: tuple[Entry, ...]
    hidden: int
    complete: bool
    depth: int


@dataclass(frozen=True)
class Names:
    """What one folder holds, sorted: folders first, then by name."""

    entries: tuple[Entry, ...]
    hidden: int
    complete: bool


def list_folder(folder: ContainedFolder, path: str = ".", *, depth: int = 1, limit: int = 500) -> Listing:
    """Return the folder's entries, and deeper levels up to `depth` while a whole level fits into `limit` entries.

    Raises:
        WrongKindError: It is a file.
    """
    with folder.open(path) as opened:
        if not opened.is_folder:
            raise WrongKindError(f"{shown(opened.path)} is a file, not a folder. Read it instead.")
        names = names_in(opened.fd, opened.path)
        entries = list(names.entries[:limit])
        hidden, complete = names.hidden, names.complete and len(names.entries) <= limit
        levels, level = 1, entries
        while complete and levels < depth:
            below: list[Entry] = []
            for entry in level:
                if entry.kind == "folder" and not entry.skipped and len(entries) + len(below) <= limit:
                    with subfolder(opened.fd, opened.path, entry.path) as fd:
                        found = names_in(fd, entry.path) if fd is not None else Names((), 0, True)
                    below.extend(found.entries)
                    hidden += found.hidden
                    complete = complete and found.complete
            if not below or len(entries) + len(below) > limit:
                break
            entries.extend(below)
            levels, level = levels + 1, below
        return Listing(opened.path, tuple(entries), hidden, complete, levels)


def similar_paths(folder: ContainedFolder, path: str, most: int = 3) -> list[str]:
    """Return up to `most` existing paths whose last name is spelled like that of a missing one, in the same folder.

    Empty when the folder does not exist either, or may not be looked into.
    """
    above, _, name = path.rstrip("/").rpartition("/")
    try:
        names = [entry.path for entry in list_folder(folder, above or ".", limit=MOST_NAMES).entries]
    except AppError:
        return []
    by_name = {entry.rpartition("/")[2].casefold(): entry for entry in names}
    return [by_name[found] for found in get_close_matches(name.casefold(), by_name, n=most, cutoff=0.6)]


def names_in(fd: int, path: str) -> Names:
    """Return what the open folder `fd`, known as `path`, holds; denied names are counted and left out."""
    base = () if path == "." else tuple(path.split("/"))
    entries: list[Entry] = []
    hidden = seen = 0
    with os.scandir(fd) as scan:
        for item in scan:
            seen += 1
            if seen > MOST_NAMES:
                break
            if why_denied((*base, item.name)) is not None:
                hidden += 1
                continue
            entries.append(_entry(item, "/".join((*base, item.name))))
    entries.sort(key=lambda entry: (entry.kind != "folder", entry.path))
    return Names(tuple(entries), hidden, seen <= MOST_NAMES)


@contextmanager
def subfolder(fd: int, base: str, path: str) -> Iterator[int | None]:
    """Open the folder `path` below the open folder `fd` (known as `base`), None when it went away or became a link."""
    names = path.split("/")[0 if base == "." else base.count("/") + 1 :]
    here = os.dup(fd)
    try:
        for name in names:
            try:
                below = os.open(name, READ | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            except OSError:
                # Gone, replaced or not ours to read: a walk shows what is there, and this is not.
                yield None
                return
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _entry(item: os.DirEntry[str], path: str) -> Entry:
    try:
        if item.is_symlink():
            return Entry(path, "link", 0)
        if item.is_dir(follow_symlinks=False):
            return Entry(path, "folder", 0, skipped=item.name in SKIPPED_FOLDERS)
        if item.is_file(follow_symlinks=False):
            return Entry(path, "file", item.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        # It went away between the listing and the look: shown as something that cannot be read.
        return Entry(path, "special", 0)
    return Entry(path, "special", 0)
