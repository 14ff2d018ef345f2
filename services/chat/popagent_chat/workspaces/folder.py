"""Where workspaces may lie: existing directories strictly below the workspace root."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from popagent_kit.errors import AppError, ConflictError, InvalidInputError
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_sandbox.contained import ContainedFolder


class WorkspaceGoneError(ConflictError):
    """The folder of this workspace cannot be opened."""

    code = "workspace_gone"


def registered_path(root: Path, text: str) -> str:
    """Return `text` as the stored relative path.

    Raises:
        InvalidInputError: Absolute, hidden or traversing, not an existing directory, or it leads outside by a link.
    """
    path = PurePosixPath(text)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    if path.is_absolute() or "\\" in text or not path.parts:
        raise InvalidInputError("Give a path relative to the workspace root.", field="path")
    if any(part.startswith(".") for part in path.parts):
        raise InvalidInputError("The path must not contain .. or hidden folders.", field="path")
    try:
        ContainedFolder.below(root, str(path)).close()
    except AppError as error:
        raise InvalidInputError(
            f"There is no directory {path} below the workspace root. Create it there, or clone a repository into it.",
            field="path",
        ) from error
    return str(path)


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
