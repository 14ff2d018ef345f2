"""What git tells about a checkout: its state, its history, its differences. Read only, bounded, and nothing is run.

Files that agents never see (denied.py) are left out everywhere and counted. Texts of a repository are data.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from popagent_kit.errors import AppError, ConflictError, InvalidInputError
from popagent_kit.text import excerpt, one_line
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.denied import why_denied
from popagent_sandbox.errors import PathMissingError, PathRefusedError
from popagent_sandbox.git_dir import OBJECTS, GitDir, RepositoryRefusedError, git_dir_for
from popagent_sandbox.git_records import (
    Branch,
    Change,
    Commit,
    branch_from,
    commit_from,
    harmless_lines,
    names_of,
    raw_changes,
    records,
    status_changes,
    text_of,
    visible,
)
from popagent_sandbox.git_run import Bounds, Output, run
from popagent_sandbox.listing import SKIPPED_FOLDERS
from popagent_sandbox.paths import printable, relative_parts, shown
from popagent_sandbox.reading import is_binary, read_text
from popagent_telemetry import redact, without_private_keys

log = logging.getLogger(__name__)

MOST_FILES: Final = 2_000
MOST_COMMITS: Final = 200
MOST_BRANCHES: Final = 200
MOST_NEW_FILES: Final = 50
MOST_PATH_BYTES: Final = 100_000
LONGEST_REVISION: Final = 200
LONGEST_MESSAGE: Final = 8_000
LARGEST_BLOB_BYTES: Final = 4 * 1024 * 1024
DEFAULT: Final = Bounds()


_REVISION: Final = re.compile(r"[^\W_][^\x00-\x20\x7f:?*\[\]\\{}\"'`$;|&<>()!]*")


class CommitMissingError(ConflictError):
    """There is no such commit, branch or tag in this repository."""

    code = "commit_missing"


class NoCommitError(CommitMissingError):
    """This repository has no commit yet."""

    code = "no_commit"


@dataclass(frozen=True)
class Status:
    """`branch` is None on a detached head, `commit` None before the first one; `hidden` files may not be seen."""

    branch: str | None
    commit: str | None
    changes: tuple[Change, ...]
    hidden: int
    complete: bool


@dataclass(frozen=True)
class Difference:
    """Files, and their patch as text; `patch_complete` is false when it was cut, on a line's end."""

    changes: tuple[Change, ...]
    patch: str
    hidden: int
    complete: bool
    patch_complete: bool


class Checkout:
    """One look at a repository; a git dir of ours stands for it as long as it is open."""

    def __init__(self, folder: ContainedFolder, git: GitDir, bounds: Bounds) -> None:
        self._folder = folder
        self._git = git
        self._bounds = bounds

    @property
    def branch(self) -> str | None:
        """Return the branch it stands on, None for none."""
        return None if self._git.branch is None else printable(self._git.branch)

    def status(self) -> Status:
        """Return what differs from the last commit, new files included; a wholly new folder is one entry."""
        output = self._run(
            ["status", "--porcelain=v2", "-z", "--untracked-files=normal", "--ignore-submodules=all", "--find-renames"]
        )
        changes, hidden = visible(status_changes(records(output.data)))
        complete = not output.cut and len(changes) <= MOST_FILES
        return Status(self.branch, self._git.commit, changes[:MOST_FILES], len(hidden), complete)

    def difference(self, base: str = "", target: str = "", path: str = ".", *, patch_bytes: int = 64_000) -> Difference:
        """Compare two commits; without `target`, `base` (else the last commit) with the files as they are now.

        Raises:
            CommitMissingError: There is no such commit.
            InvalidInputError: The name of a commit is none.
        """
        before = self._commit(base) if base else self._git.commit or self._git.empty_tree
        sides = [before, self._commit(target)] if target else [before]
        found = self._difference(sides, path, patch_bytes)
        return found if target else self._with_new_files(found, path, patch_bytes)

    def log(self, revision: str = "", path: str = ".", limit: int = 20) -> tuple[Commit, ...]:
        """Return the last commits up to `revision`, newest first; with a path, those that changed it.

        Raises:
            NoCommitError: There is none yet.
        """
        start = self._commit(revision)
        most = max(1, min(limit, MOST_COMMITS))
        form = "--format=%H%x1f%h%x1f%aI%x1f%an%x1f%s"
        output = self._run(["log", "-z", f"-n{most}", form, "--no-color", start, "--", *_pathspec(path)])
        return tuple(commit_from(record) for record in records(output.data) if record.count("\x1f") >= 4)

    def show(self, revision: str, path: str = ".", *, patch_bytes: int = 64_000) -> tuple[Commit, Difference]:
        """Return one commit and what it changed against its first parent."""
        found = self._commit(revision)
        form = "--format=%P%x1f%H%x1f%h%x1f%aI%x1f%an%x1f%s%x1f%B"
        text = text_of(self._run(["log", "-z", "-n1", form, "--no-color", found, "--"]).data)
        parents, _, rest = text.partition("\x1f")
        message = text.split("\x1f", 6)[-1].strip("\0\n ")
        commit = commit_from(rest, tuple(parents.split()), excerpt(harmless_lines(message), LONGEST_MESSAGE))
        base = commit.parents[0] if commit.parents else self._git.empty_tree
        return commit, self._difference([base, found], path, patch_bytes)

    def file_at(self, revision: str, path: str) -> str:
        """Return the text of a file as it was in a commit.

        Raises:
            PathMissingError: The commit has no such file.
            PathRefusedError: It is hidden from agents, or no text file.
        """
        commit, specs = self._commit(revision), _pathspec(path)
        if not specs:
            raise PathRefusedError("Name a file.")
        listed = list(records(self._run(["ls-tree", "-z", "--full-tree", commit, "--", *specs]).data))
        mode, kind, blob = (listed[0].partition("\t")[0].split() if listed else ["", "", ""])[:3]
        if not listed:
            raise PathMissingError(f"There is no {shown(path)} in the commit {shown(revision)}.")
        if kind != "blob" or not mode.startswith("100"):
            raise PathRefusedError(f"{shown(path)} is no file in the commit {shown(revision)}.")
        output = self._run(["cat-file", "blob", blob], LARGEST_BLOB_BYTES)
        if output.cut or is_binary(output.data):
            raise PathRefusedError(
                f"{shown(path)} is a binary file there, or has more than {LARGEST_BLOB_BYTES} bytes."
            )
        return harmless_lines(text_of(without_private_keys(output.data)))

    def branches(self, limit: int = 50) -> tuple[Branch, ...]:
        """Return the branches, the one with the newest commit first."""
        most = max(1, min(limit, MOST_BRANCHES))
        form = "--format=%(refname)%1f%(objectname:short)%1f%(committerdate:iso-strict)%1f%(contents:subject)%00"
        output = self._run(
            ["for-each-ref", form, "--sort=-committerdate", f"--count={most}", "refs/heads", "refs/remotes"]
        )
        return tuple(
            branch_from(record.strip("\n"), self._git.branch)
            for record in records(output.data)
            if record.count("\x1f") >= 3
        )

    def _difference(self, sides: Sequence[str], path: str, patch_bytes: int) -> Difference:
        # The pointer of a submodule is part of a commit; in the working tree git would look into the submodule itself.
        submodules = "--ignore-submodules=all" if len(sides) == 1 else "--ignore-submodules=none"
        common = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", submodules]
        output = self._run([*common, "--raw", "--numstat", "-z", "--abbrev=40", *sides, "--", *_pathspec(path)])
        changes, hidden = visible(raw_changes(records(output.data)))
        wanted, all_wanted = _wanted(changes, hidden) if not output.cut else ([], False)
        patch, whole = "", True
        if wanted and patch_bytes > 0:
            options = ["--submodule=short", "--src-prefix=a/", "--dst-prefix=b/"]
            patched = self._run([*common, *options, *sides, "--", *wanted], patch_bytes)
            patch, whole = _patch(patched), not patched.cut
        complete = not output.cut and len(changes) <= MOST_FILES
        return Difference(changes[:MOST_FILES], patch, len(hidden), complete, whole and all_wanted)

    def _with_new_files(self, found: Difference, path: str, patch_bytes: int) -> Difference:
        """Add the files that git does not know yet, read by us: they are what an agent has just written."""
        output = self._run(["ls-files", "--others", "--exclude-standard", "-z", "--", *_pathspec(path)])
        names = [name for name in records(output.data) if SKIPPED_FOLDERS.isdisjoint(name.split("/"))]
        new, hidden = visible(Change(name, "new") for name in names if not name.endswith("/"))
        pieces, room = [found.patch] if found.patch else [], patch_bytes - len(found.patch.encode())
        whole = found.patch_complete and len(new) <= MOST_NEW_FILES
        for change in new[:MOST_NEW_FILES]:
            piece = self._as_added(change.path, room)
            room -= len(piece.encode())
            if room < 0:
                whole = False
                break
            pieces.append(piece)
        return Difference(
            (*found.changes, *new)[:MOST_FILES],
            "\n".join(piece.rstrip("\n") for piece in pieces if piece),
            found.hidden + len(hidden),
            found.complete and not output.cut,
            whole,
        )

    def _as_added(self, path: str, room: int) -> str:
        head = f"diff --git a/{printable(path)} b/{printable(path)}\nnew file, not known to git yet"
        try:
            text = read_text(self._folder, path, characters=max(1, room))
        except AppError:
            return f"{head}\n(not shown: a binary, large or special file)"
        lines = "\n".join(f"+{line}" for line in harmless_lines(text.text).split("\n")) if text.text else "(empty)"
        cut = "" if text.complete else "\n(cut)"
        return f"{head}\n{lines}{cut}"

    def _commit(self, revision: str) -> str:
        """Return the full id of a commit; what a model wrote reaches git only here, and never as an option."""
        if not revision:
            if self._git.commit is None:
                raise NoCommitError
            return self._git.commit
        if len(revision) > LONGEST_REVISION or _REVISION.fullmatch(revision) is None or ".." in revision:
            told = shown(revision.encode("utf-8", "replace").decode())
            raise InvalidInputError(
                f"{told} is no name of a commit. Use a branch, a tag, an id, or HEAD~1 for the one before."
            )
        command = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        output = self._run(command, fails=True)
        found = text_of(output.data).strip()
        if output.code == 0 and re.fullmatch(r"[0-9a-f]{40,64}", found):
            return found
        if self._git.commit is None:
            raise NoCommitError
        raise CommitMissingError(f"There is no commit, branch or tag {shown(revision)} in this repository.")

    def _run(self, arguments: Sequence[str], most: int | None = None, *, fails: bool = False) -> Output:
        bounds = self._bounds
        if most is not None:
            bounds = Bounds(most, bounds.time_s, bounds.stopped)
        output = run(self._git.storage, self._folder, OBJECTS, arguments, bounds)
        if output.code != 0 and not fails:
            raise _failure(output, arguments[0])
        return output


@contextmanager
def checkout(folder: ContainedFolder, bounds: Bounds = DEFAULT) -> Iterator[Checkout]:
    """Open the repository at the top of the folder for the length of the block.

    Raises:
        NoRepositoryError: It is a plain folder.
        RepositoryRefusedError: Its history cannot be read here; the message says why.
    """
    with git_dir_for(folder) as git:
        yield Checkout(folder, git, bounds)


def _failure(output: Output, command: str) -> RepositoryRefusedError:
    """Say what is broken; what git itself wrote names paths of this machine and stays in the log."""
    said = output.errors.casefold()
    if "index" in said:
        what = "its index is damaged or of a kind that popagent does not read"
    elif "memory" in said:
        what = "git needs more memory for it than it is given"
    else:
        what = "its objects are damaged or incomplete"
    log.warning("git failed", extra={"command": command, "reason": one_line(redact(output.errors), 300)})
    return RepositoryRefusedError(f"This repository cannot be read: {what}. Run `git fsck` in it.")


def _wanted(changes: Iterable[Change], hidden: Iterable[Change]) -> tuple[list[str], bool]:
    """Return the paths to make a patch of, as far as they fit on a command line.

    A path that is a file here and was a folder there would match what lay in that folder, so it is left out.
    """
    paths = names_of(changes)
    above = {path[:end] for path in paths | names_of(hidden) for end, char in enumerate(path) if char == "/"}
    wanted, room = [], MOST_PATH_BYTES
    for path in sorted(paths - above):
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            continue  # no checkout has such a name, and git refuses it as a path
        room -= len(os.fsencode(path)) + 1
        if room < 0:
            break
        wanted.append(path)
    return wanted, len(wanted) == len(paths)


def _pathspec(path: str) -> list[str]:
    """Return the path for behind `--`, nothing for the whole checkout.

    Raises:
        PathRefusedError: It leaves the workspace or is hidden from agents.
    """
    parts = relative_parts(path)
    reason = why_denied(parts)
    if reason is not None:
        raise PathRefusedError(f"{shown(path)} is hidden from agents: {reason}.")
    return ["/".join(parts)] if parts else []


def _patch(output: Output) -> str:
    data = output.data
    if output.cut:
        data = data[: data.rfind(b"\n") + 1]
    return harmless_lines(text_of(without_private_keys(data)))
