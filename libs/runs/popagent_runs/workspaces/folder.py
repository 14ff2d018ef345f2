"""Where workspaces may lie: existing directories strictly below the workspace root."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from popagent_kit.errors import AppError, ConflictError, InvalidInputError
from popagent_proto.chat.workspaces import WorkspaceRow, WorkspaceView
from popagent_sandbox.checkout import NO_CHECKOUT, checkout_of
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import PathRefusedError

FolderId = tuple[int, int]
"""Device and inode: the same folder has the same pair, by whatever way it is reached."""


class WorkspaceGoneError(ConflictError):
    """The folder of this workspace cannot be opened."""

    code = "workspace_gone"


def registered_path(root: Path, text: str) -> str:
    """Return `text` as the stored relative path, free of links.

    Raises:
        InvalidInputError: Absolute, hidden or traversing, not an existing directory, or it leads outside by a link.
    """
    path = PurePosixPath(text)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    if path.is_absolute() or "\\" in text or not path.parts:
        raise InvalidInputError(
            "Only folders below the workspace root can be registered: put it there, and give its path relative to it.",
            field="path",
        )
    if any(part.startswith(".") for part in path.parts):
        raise InvalidInputError("The path must not contain .. or hidden folders.", field="path")
    try:
        with ContainedFolder.below(root, str(path)) as folder:
            real = _real_path(root, path)
            with ContainedFolder.below(root, str(real)) as again:
                if folder_id(folder) != folder_id(again):
                    raise PathRefusedError("It was replaced while it was looked at.")
    except AppError as error:
        raise InvalidInputError(
            f"There is no directory {path} below the workspace root. Create it there, or clone a repository into it.",
            field="path",
        ) from error
    if not real.parts or any(part.startswith(".") for part in real.parts):
        raise InvalidInputError("The path must not lead to a hidden folder or to the root itself.", field="path")
    return str(real)


def _real_path(root: Path, path: PurePosixPath) -> PurePosixPath:
    """Return the way to the folder without links; it is opened below the root again, so that a race gains nothing."""
    real = PurePosixPath(os.path.realpath(root / path))
    top = os.path.realpath(root)
    if not real.is_relative_to(top):
        raise PathRefusedError("It leads out of the workspace root.")
    return real.relative_to(top)


def folder_id(folder: ContainedFolder) -> FolderId:
    """Return what is the same for the same folder, by whatever way it was reached."""
    with folder.descriptor() as descriptor:
        status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def ids_of(root: Path, paths: Iterable[str]) -> dict[FolderId, str]:
    """Return the paths whose folders can be opened, by folder."""
    found = {}
    for path in paths:
        try:
            with ContainedFolder.below(root, path) as folder:
                found[folder_id(folder)] = path
        except AppError:
            continue
    return found


def with_state(root: Path, workspace: WorkspaceView) -> WorkspaceRow:
    """Return the registration with what lies at its path now."""
    try:
        with ContainedFolder.below(root, workspace.path) as folder, folder.descriptor() as descriptor:
            exists, state = True, checkout_of(descriptor)
    except AppError:
        exists, state = False, NO_CHECKOUT
    return WorkspaceRow(**dict(workspace), exists=exists, is_repository=state.is_repository, branch=state.branch)


def open_folder(root: Path, workspace: WorkspaceView) -> ContainedFolder:
    """Open the directory of a registered workspace.

    Raises:
        WorkspaceGoneError: It is gone, or a link leads it outside the root by now.
    """
    try:
        return ContainedFolder.below(root, workspace.path)
    except AppError as error:
        raise WorkspaceGoneError(
            f"The folder of the workspace “{workspace.name}” cannot be opened: there is no directory {workspace.path} "
            "below the workspace root any more. Put it back, or start a session in another workspace."
        ) from error
