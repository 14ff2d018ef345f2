"""Run the prepare command of a workspace, as the operator who asks for it: with the network, outside of a sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from popagent_kit.errors import ConflictError, DependencyError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.grant_file import grant_file, granted


class NothingToPrepareError(ConflictError):
    """No command prepares this workspace."""

    code = "nothing_to_prepare"


class PrepareFailedError(DependencyError):
    """The command that prepares this workspace failed."""

    code = "prepare_failed"
    retryable = False


def prepare(home: Path, root: Path, workspace_path: str) -> str:
    """Run it in the workspace's folder, on the operator's terminal; returns the command.

    Raises:
        NothingToPrepareError: The operator's file names none, or there is no file.
        GrantFileError: The file cannot be used.
        PrepareFailedError: It ended with another status than 0.
    """
    given = granted(home, workspace_path)
    if given.prepare is None:
        raise NothingToPrepareError(
            f"No command prepares this workspace. Write one into {grant_file(home, workspace_path)}, for example: "
            'prepare = "npm ci"'
        )
    with ContainedFolder.below(root, workspace_path) as folder:
        path = os.pathsep.join([*given.grant.path, os.environ.get("PATH", os.defpath)])
        environment = {**os.environ, **given.grant.environment, "PATH": path}
        done = subprocess.run(["/bin/sh", "-c", given.prepare], cwd=folder.root, env=environment, check=False)
    if done.returncode != 0:
        raise PrepareFailedError(f"The command that prepares this workspace ended with status {done.returncode}.")
    return given.prepare
