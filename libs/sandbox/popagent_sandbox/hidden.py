"""Which paths of a workspace a command must not see, and which not change: the same that the file tools refuse."""

from __future__ import annotations

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


class TooMuchToHideError(ConflictError):
    """There is too much in this workspace that commands must not see."""

    code = "too_much_to_hide"


@dataclass(frozen=True, slots=True)
class Hidden:
    """Relative paths; `protected` are to be read only, the MOST_PROTECTED nearest to the top of the workspace."""

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Seen:
    changed_ns: int
    below: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...]
    protected: tuple[str, ...]


class HiddenPaths:
    """Looks through a workspace; a folder that did not change since the last look is not listed again."""

    def __init__(self, folder: ContainedFolder) -> None:
        self._folder = folder
        self._seen: dict[str, _Seen] = {}

    def look(self) -> Hidden:
        """Return what is to be covered now; blocks while it looks.

        Raises:
            TooMuchToHideError: It is more than can be covered, or the looking took too long.
        """
        deadline = time.monotonic() + LONGEST_LOOK_S
        seen: dict[str, _Seen] = {}
        folders: list[str] = []
        files: list[str] = []
        protected: list[str] = []
        with self._folder.descriptor() as fd:
            left = [""]
            while left:
                if time.monotonic() > deadline:
                    raise TooMuchToHideError(
                        f"Looking for credentials to hide took over {LONGEST_LOOK_S:g} s: this workspace is too large."
                    )
                path = left.pop()
                found = self._listed(fd, path)
                if found is None:
                    continue
                seen[path] = found
                left += found.below
                folders += found.folders
                files += found.files
                protected += found.protected
        self._seen = seen
        if len(folders) + len(files) > MOST_HIDDEN:
            raise TooMuchToHideError(
                f"{len(folders) + len(files)} paths in this workspace may hold credentials, for example "
                f"{shown((files or folders)[0])}; commands run where there are at most {MOST_HIDDEN}."
            )
        protected.sort(key=lambda path: (path.count("/"), path))
        return Hidden(tuple(folders), tuple(files), tuple(protected[:MOST_PROTECTED]))

    def _listed(self, root: int, path: str) -> _Seen | None:
        # Only names are taken from here: a folder that is replaced by a link meanwhile shows nothing of what it holds.
        place = f"/proc/self/fd/{root}/{path}"
        try:
            changed_ns = os.stat(place).st_mtime_ns
            known = self._seen.get(path)
            if known is not None and known.changed_ns == changed_ns:
                return known
            settled = time.time_ns() - changed_ns > SETTLED_NS
            return self._scanned(place, path, changed_ns if settled else -1)
        except OSError:
            return None  # gone, or not ours to read, and so not the command's

    @staticmethod
    def _scanned(place: str, path: str, changed_ns: int) -> _Seen:
        parts = tuple(path.split("/")) if path else ()
        # What is installed brings instructions and settings of its own, and none of them is the project's.
        looks_for_protected = SKIPPED_FOLDERS.isdisjoint(parts) and why_protected(parts) is None
        below, folders, files, protected = [], [], [], []
        with os.scandir(place) as scan:
            for item in scan:
                inner = f"{path}/{item.name}" if path else item.name
                is_folder = item.is_dir(follow_symlinks=False)
                if why_denied((*parts, item.name)) is None:
                    if is_folder:
                        below.append(inner)
                    if looks_for_protected and not item.is_symlink() and why_protected((*parts, item.name)) is not None:
                        protected.append(inner)
                elif is_folder:
                    folders.append(inner)
                elif not item.is_symlink():  # what a link points at has a name of its own
                    files.append(inner)
        return _Seen(changed_ns, tuple(below), tuple(folders), tuple(files), tuple(protected))
