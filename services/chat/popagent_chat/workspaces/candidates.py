"""Directories below the workspace root that nobody has registered: what a page may offer."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from popagent_proto.chat.workspaces import WorkspaceCandidate, WorkspaceCandidates
from popagent_runs.workspaces.folder import FolderId
from popagent_sandbox.checkout import checkout_of
from popagent_sandbox.denied import why_denied

MOST_LISTED: Final = 200
MOST_LOOKED_AT: Final = 2_000
# A folder that is no repository may hold some: `group/project`.
DEEPEST: Final = 2
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass
class _Walk:
    registered: Collection[FolderId]
    found: list[WorkspaceCandidate] = field(default_factory=list)
    looked_at: int = 0
    complete: bool = True


def candidates(root: Path, registered: Collection[FolderId]) -> WorkspaceCandidates:
    """Look two levels deep, at most at 2,000 names; folders of the second level are told only when repositories."""
    walk = _Walk(registered)
    try:
        descriptor = os.open(root, _FOLDER)
    except OSError:
        return WorkspaceCandidates(items=[], complete=True)
    try:
        _look_into(descriptor, (), walk)
    finally:
        os.close(descriptor)
    ordered = sorted(walk.found, key=lambda each: (not each.is_repository, each.path.casefold(), each.path))
    return WorkspaceCandidates(items=ordered[:MOST_LISTED], complete=walk.complete and len(ordered) <= MOST_LISTED)


def _look_into(folder: int, way: tuple[str, ...], walk: _Walk) -> None:
    for name in _folders_in(folder, walk):
        try:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except OSError:
            continue  # gone since, or closed to us
        try:
            status = os.fstat(inner)
            state = checkout_of(inner)
            taken = (status.st_dev, status.st_ino) in walk.registered
            if not taken and (state.is_repository or not way):
                path = "/".join((*way, name))
                walk.found.append(WorkspaceCandidate(path=path, is_repository=state.is_repository, branch=state.branch))
            if not taken and not state.is_repository and len(way) + 1 < DEEPEST:
                _look_into(inner, (*way, name), walk)
        finally:
            os.close(inner)


def _folders_in(folder: int, walk: _Walk) -> Iterator[str]:
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            walk.looked_at += 1
            if walk.looked_at > MOST_LOOKED_AT:
                walk.complete = False
                break
            if _may_be_registered(entry.name) and entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
    yield from sorted(names)


def _may_be_registered(name: str) -> bool:
    return name.isprintable() and not name.startswith(".") and "\\" not in name and why_denied((name,)) is None
