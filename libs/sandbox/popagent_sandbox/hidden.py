"""Which paths of a workspace a command must not see, and which not change: the same that the file tools refuse."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from typing import Final

from popagent_kit.errors import ConflictError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.denied import why_denied
from popagent_sandbox.listing import SKIPPED_FOLDERS
from popagent_sandbox.paths import shown
from popagent_sandbox.protected import why_protected

# Each is a mount of its own, and a protected one a descriptor besides.
MOST_HIDDEN: Final = 400
MOST_PROTECTED: Final = 200
LONGEST_LOOK_S: Final = 30.0
# A folder that changed this shortly before it was looked at may change again within the same tick of its clock.
SETTLED_NS: Final = 2_000_000_000
# Deeper folders are covered whole: what lies there has a path that no mount could be made at.
LONGEST_PATH_BYTES: Final = 3_000
_NO_FOLDER: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class TooMuchToHideError(ConflictError):
    """There is too much in this workspace that commands must not see."""

    code = "too_much_to_hide"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Relative paths; `protected` are to be read only, the MOST_PROTECTED nearest to the top of the workspace.

    `pinned` are folders that must keep their names: by these alone something in them is known.
    """

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()


class _ClosedError(Exception):
    """A folder that cannot be looked into by us, and could be by a command: who owns a folder may open it."""


@dataclass(frozen=True, slots=True)
class _Version:
    """Whoever owns a folder can set its times back, but for the one of its last change."""

    device: int
    number: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class _Seen:
    version: _Version | None
    below: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...]
    protected: tuple[str, ...]
    is_pinned: bool


class HiddenPaths:
    """Looks through a workspace; a folder that did not change since the last look is not listed again."""

    def __init__(self, folder: ContainedFolder) -> None:
        self._folder = folder
        self._seen: dict[str, _Seen] = {}

    def look(self) -> Hidden:
        """Return what is to be covered now; blocks while it looks.

        Raises:
            TooMuchToHideError: It is more than can be covered, the looking took too long or is not allowed.
        """
        deadline = time.monotonic() + LONGEST_LOOK_S
        seen: dict[str, _Seen] = {}
        folders: list[str] = []
        files: list[str] = []
        protected: list[str] = []
        pinned: list[str] = []
        with self._folder.descriptor() as fd:
            left = [""]
            while left:
                if time.monotonic() > deadline:
                    raise TooMuchToHideError(
                        f"Looking for credentials to hide took over {LONGEST_LOOK_S:g} s: this workspace is too large."
                    )
                path = left.pop()
                try:
                    found = self._listed(fd, path)
                except _ClosedError:
                    if not path:
                        raise TooMuchToHideError("The folder of this workspace cannot be looked into.") from None
                    folders.append(path)
                    continue
                if found is None:
                    continue
                seen[path] = found
                left += found.below
                folders += found.folders
                files += found.files
                protected += found.protected
                pinned += [path] if found.is_pinned else []
        self._seen = seen
        if len(folders) + len(files) > MOST_HIDDEN:
            raise TooMuchToHideError(
                f"{len(folders) + len(files)} paths in this workspace may hold credentials, for example "
                f"{shown((files or folders)[0])}; commands run where there are at most {MOST_HIDDEN}."
            )
        protected.sort(key=lambda path: (path.count("/"), path))
        return Hidden(tuple(folders), tuple(files), tuple(protected[:MOST_PROTECTED]), tuple(sorted(pinned)))

    def _listed(self, root: int, path: str) -> _Seen | None:
        # Only names are taken from here: a folder that is replaced by a link meanwhile shows nothing of what it holds.
        place = f"/proc/self/fd/{root}/{path}"
        if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
            raise _ClosedError
        try:
            status = os.stat(place)
            version = _Version(status.st_dev, status.st_ino, status.st_ctime_ns)
            known = self._seen.get(path)
            if known is not None and known.version == version:
                return known
            if not os.access(place, os.R_OK | os.X_OK, effective_ids=True):
                raise _ClosedError
            settled = time.time_ns() - version.changed_ns > SETTLED_NS
            return self._scanned(place, path, version if settled else None)
        except PermissionError:
            raise _ClosedError from None
        except OSError as error:
            if error.errno in _NO_FOLDER:
                return None
            raise

    @staticmethod
    def _scanned(place: str, path: str, version: _Version | None) -> _Seen:
        parts = tuple(path.split("/")) if path else ()
        # What is installed brings instructions and settings of its own, and none of them is the project's.
        looks_for_protected = SKIPPED_FOLDERS.isdisjoint(parts) and why_protected(parts) is None
        below, folders, files, protected = [], [], [], []
        is_pinned = False
        with os.scandir(place) as scan:
            for item in scan:
                name = item.name
                inner = f"{path}/{name}" if path else name
                is_folder = item.is_dir(follow_symlinks=False)
                if why_denied((*parts, name)) is None:
                    if is_folder:
                        below.append(inner)
                    if looks_for_protected and not item.is_symlink() and why_protected((*parts, name)) is not None:
                        protected.append(inner)
                        is_pinned |= why_protected((name,)) is None
                    continue
                is_pinned |= why_denied((name,)) is None
                if is_folder:
                    folders.append(inner)
                elif not item.is_symlink():  # what a link points at has a name of its own
                    files.append(inner)
        return _Seen(version, tuple(below), tuple(folders), tuple(files), tuple(protected), is_pinned)
