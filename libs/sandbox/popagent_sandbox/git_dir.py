"""A git dir of ours for a checkout that may be hostile: its history is read, its configuration never.

What lies in `.git` is opened by descriptors without following links and taken over as data: where HEAD stands, the
refs, a copy of the index, what is ignored. Nothing that names a program is taken over, so git knows none to run.
Objects are read where they are, as the alternates of an empty store of ours.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConflictError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.git_run import is_confined

log = logging.getLogger(__name__)

LARGEST_INDEX_BYTES: Final = 128 * 1024 * 1024
LARGEST_REFS_BYTES: Final = 16 * 1024 * 1024
LARGEST_TEXT_BYTES: Final = 256 * 1024
MOST_REFS: Final = 5_000
MOST_OBJECTS: Final = 500_000
DEEPEST_REF: Final = 12
OBJECTS: Final = ".git/objects"
PREFIX: Final = "popagent-git-"
LEFT_BEHIND_S: Final = 3_600
# A container has 64 MB of it unless it is told otherwise.
LEFT_FREE_BYTES: Final = 16 * 1024 * 1024
MEMORY: Final = "/dev/shm"  # noqa: S108 (a folder of a random name and closed to others is made in it)
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF: Final = re.compile(r"refs/(?:heads|tags|remotes)(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+")
_SHA256_DIGITS: Final = 64
# Switches that say how files lie on this disk: without them a clean checkout may look changed. They name no program.
_SWITCH: Final = re.compile(
    r"(filemode|symlinks|ignorecase|autocrlf|eol)\s*=\s*(true|false|input|lf|crlf|native)", re.I
)

CONFIG: Final = """\
[core]
repositoryFormatVersion = {version}
bare = false
hooksPath = /dev/null
fsmonitor = false
untrackedCache = false
attributesFile = /dev/null
excludesFile = /dev/null
commitGraph = false
multiPackIndex = false
quotePath = false
bigFileThreshold = 8m
packedGitWindowSize = 32m
packedGitLimit = 256m
deltaBaseCacheLimit = 32m
{switches}
[diff]
ignoreSubmodules = all
renameLimit = 400
[submodule]
recurse = false
[protocol]
allow = never
[gc]
auto = 0
[maintenance]
auto = false
[log]
showSignature = false
mailmap = false
[extensions]
{extensions}
"""


class NoRepositoryError(ConflictError):
    """This workspace is a plain folder and no Git repository, so it has no history and no changes to compare."""

    code = "no_repository"


class RepositoryRefusedError(ConflictError):
    """The history of this repository cannot be read here."""

    code = "repository_refused"


@dataclass(frozen=True)
class GitDir:
    """`storage` is our git dir. `branch` is None on a detached head, `commit` None before the first commit."""

    storage: Path
    branch: str | None
    commit: str | None
    wide: bool

    @property
    def empty_tree(self) -> str:
        """Return the id of the tree without files, which git knows without an object."""
        if self.wide:
            return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@contextmanager
def git_dir_for(folder: ContainedFolder) -> Iterator[GitDir]:
    """Make the git dir for the length of the block.

    Raises:
        NoRepositoryError: There is no `.git` at the top of the folder.
        RepositoryRefusedError: Its storage is elsewhere, borrowed, of a kind we do not read, or broken.
    """
    with folder.descriptor() as top, _opened_storage(top) as source, ExitStack() as made:
        try:
            place = _quick_place(source)
            _sweep(place or tempfile.gettempdir())
            scratch = tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True)
            git = _take_over(source, Path(made.enter_context(scratch)))
        except OSError as error:
            log.warning("no git dir can be made", exc_info=error)
            raise RepositoryRefusedError("There is no room on this machine to look at the repository.") from error
        yield git


@functools.cache
def _sweep(place: str) -> None:
    """Remove, once a process, what killed ones left: no look at a repository takes as long as LEFT_BEHIND_S."""
    oldest = time.time() - LEFT_BEHIND_S
    with os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            status = entry.stat(follow_symlinks=False)
            if status.st_uid == os.getuid() and status.st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)


def _quick_place(source: int) -> str | None:
    """Return where a dozen small files cost nothing: memory, if there is room for what is copied."""
    needed = sum(_size(name, source) for name in ("index", "packed-refs"))
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return None
    free = os.statvfs(MEMORY)
    return MEMORY if free.f_bavail * free.f_frsize > 2 * needed + LEFT_FREE_BYTES else None


def _size(name: str, folder: int) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except OSError:
        return 0


@contextmanager
def _opened_storage(top: int) -> Iterator[int]:
    try:
        kind = os.stat(".git", dir_fd=top, follow_symlinks=False).st_mode
    except OSError as error:
        if _is_bare(top):
            raise RepositoryRefusedError(
                "This workspace is a bare repository, without files of its own. Register a clone of it instead."
            ) from error
        raise NoRepositoryError from error
    if not stat.S_ISDIR(kind):
        raise RepositoryRefusedError(
            "The history of this checkout is stored outside of the workspace (it is a further worktree, a submodule or "
            "a link), so it cannot be read here. Register a clone of its own instead."
        )
    try:
        source = os.open(".git", _FOLDER, dir_fd=top)
    except OSError as error:
        raise RepositoryRefusedError("The folder .git cannot be opened.") from error
    try:
        yield source
    finally:
        os.close(source)


def _is_bare(top: int) -> bool:
    return _is_folder("objects", top) and _is_folder("refs", top) and _bytes("HEAD", top, 4_096) is not None


def _take_over(source: int, storage: Path) -> GitDir:
    _refuse_foreign_objects(source)
    packed = _bytes("packed-refs", source, LARGEST_REFS_BYTES) or b""
    loose = dict(_loose_refs(source))
    branch, commit = _head(source, loose, packed)
    wide = len(commit or next(iter(loose.values()), "")) == _SHA256_DIGITS
    (storage / "objects").mkdir()
    (storage / "refs").mkdir()
    if branch is not None:
        (storage / "HEAD").write_bytes(b"ref: " + os.fsencode(branch) + b"\n")
    else:
        (storage / "HEAD").write_text(f"{commit}\n")
    (storage / "packed-refs").write_bytes(packed)
    for name, value in loose.items():
        path = storage / name
        with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):  # a name and a folder of it at once
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
    index = _bytes("index", source, LARGEST_INDEX_BYTES)
    if index is not None:
        (storage / "index").write_bytes(index)
    _shallow(source, storage)
    _ignored(source, storage)
    (storage / "config").write_text(_config(source, wide))
    short = None if branch is None else branch.removeprefix("refs/heads/")
    return GitDir(storage, short, commit, wide)


def _head(source: int, loose: dict[str, str], packed: bytes) -> tuple[str | None, str | None]:
    text = (_bytes("HEAD", source, 4_096) or b"").decode("utf-8", "surrogateescape").strip()
    if _ID.fullmatch(text):
        return None, text
    name = text.removeprefix("ref:").strip()
    if not text.startswith("ref:") or _REF.fullmatch(name) is None or ".." in name:
        raise RepositoryRefusedError("This repository is broken: its HEAD names neither a branch nor a commit.")
    # Looked at by its name, since of very many refs only some are taken over.
    own = loose.get(name) or _loose_ref(name, source)
    if own is not None:
        loose[name] = own
        return name, own
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(os.fsencode(name)) + rb"\r?$", packed, re.M)
    return name, None if found is None else found[1].decode()


def _loose_refs(source: int) -> Iterator[tuple[str, str]]:
    if _is_folder("reftable", source):
        raise RepositoryRefusedError("This repository stores its branches as reftable, which popagent does not read.")
    pending = [("refs/heads", 0), ("refs/tags", 0), ("refs/remotes", 0)]
    seen = 0
    while pending:
        name, depth = pending.pop()
        folder = _folder_of(name, source)
        if folder is None:
            continue
        try:
            with os.scandir(folder) as scan:
                names = sorted(entry.name for entry in islice(scan, MOST_REFS))
            for entry in names:
                seen += 1
                if seen > MOST_REFS:
                    return
                inner = f"{name}/{entry}"
                if _REF.fullmatch(inner) is None or ".." in inner or inner.endswith((".lock", ".")):
                    continue
                if _is_folder(entry, folder):
                    if depth < DEEPEST_REF:
                        pending.append((inner, depth + 1))
                    continue
                value = (_bytes(entry, folder, 1_024) or b"").decode("ascii", "replace").strip()
                if _ID.fullmatch(value):
                    yield inner, value
        finally:
            os.close(folder)


def _loose_ref(name: str, source: int) -> str | None:
    above, _, last = name.rpartition("/")
    folder = _folder_of(above, source)
    if folder is None:
        return None
    try:
        value = (_bytes(last, folder, 1_024) or b"").decode("ascii", "replace").strip()
    finally:
        os.close(folder)
    return value if _ID.fullmatch(value) else None


def _folder_of(path: str, source: int) -> int | None:
    """Open a folder below `.git` name by name; None when one of them is missing or a link."""
    here = os.dup(source)
    for name in path.split("/"):
        try:
            below = os.open(name, _FOLDER, dir_fd=here)
        except OSError:
            os.close(here)
            return None
        os.close(here)
        here = below
    return here


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _bytes(name: str, folder: int, largest: int) -> bytes | None:
    """Return a regular file's content; None when there is none, or something that is not one.

    Raises:
        RepositoryRefusedError: It is larger than `largest`.
    """
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise RepositoryRefusedError(f"This repository's {name} is larger than {largest} bytes.")
    return content


def _refuse_foreign_objects(source: int) -> None:
    objects = _folder_of("objects", source)
    if objects is None:
        raise RepositoryRefusedError("This repository is broken: it has no folder for its objects, or only a link.")
    try:
        info = _folder_of("info", objects)
        if info is not None:
            try:
                if (_bytes("alternates", info, LARGEST_TEXT_BYTES) or b"").strip():
                    raise RepositoryRefusedError(
                        "This repository borrows its history from another one (alternates), which lies outside of the "
                        "workspace. In the checkout, `git repack -a -d` makes it complete; then remove "
                        ".git/objects/info/alternates."
                    )
            finally:
                os.close(info)
        if not is_confined():
            _refuse_links(objects)
    finally:
        os.close(objects)


def _refuse_links(objects: int) -> None:
    """Look for links by hand where the kernel does not keep git from following them."""
    seen = 0
    for _, folders, files, here in os.fwalk(".", dir_fd=objects, follow_symlinks=False):
        for name in (*folders, *files):
            seen += 1
            is_link = stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
            if is_link or seen > MOST_OBJECTS:
                raise RepositoryRefusedError("This repository's objects hold links, or are too many to look at.")


def _shallow(source: int, storage: Path) -> None:
    """Take over where a shallow clone ends, else git takes the missing commits for damage."""
    lines = (_bytes("shallow", source, LARGEST_TEXT_BYTES) or b"").decode("ascii", "replace").split()
    ends = [line for line in lines if _ID.fullmatch(line)]
    if ends:
        (storage / "shallow").write_text("".join(f"{line}\n" for line in ends))


def _ignored(source: int, storage: Path) -> None:
    info = _folder_of("info", source)
    if info is None:
        return
    try:
        excluded = _bytes("exclude", info, LARGEST_TEXT_BYTES)
    finally:
        os.close(info)
    if excluded is not None:
        (storage / "info").mkdir()
        (storage / "info" / "exclude").write_bytes(excluded)


def _config(source: int, wide: bool) -> str:
    """Return our configuration: fixed, with the few switches of theirs that are read as words, not as configuration."""
    theirs = (_bytes("config", source, LARGEST_TEXT_BYTES) or b"").decode("utf-8", "replace")
    switches: dict[str, str] = {}
    section = ""
    for line in map(str.strip, theirs.splitlines()):
        if line.startswith("["):
            section = line.casefold()
        elif section == "[core]" and (found := _SWITCH.fullmatch(line)):
            switches[found[1].lower()] = found[2].lower()
    return CONFIG.format(
        version=1 if wide else 0,
        switches="\n".join(f"{name} = {value}" for name, value in switches.items()),
        extensions="objectFormat = sha256" if wide else "",
    )
