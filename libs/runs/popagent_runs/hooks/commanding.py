"""Runs a hook that is a program: confined, without a network, with the event on its standard input."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Final

from popagent_runs.hooks.failure import HookFailedError
from popagent_sandbox.confined import Confined
from popagent_sandbox.confinement import confinement_found
from popagent_sandbox.grants import Grant, Limits, Mount
from popagent_sandbox.hidden import Hidden
from popagent_sandbox.plan import plan_for

# Where the operator's folder is in the sandbox, to be read alone.
FOLDER: Final = "/hooks"
EVENT: Final = "/event.json"
AT_ONCE: Final = 8
LONGEST_OUTPUT: Final = 64 * 1024
# The caller bounds the time; this ends what nobody waits for any more.
LONGEST_S: Final = 60.0
LIMITS: Final = Limits(
    processes=64,
    memory_bytes=512 << 20,
    file_bytes=16 << 20,
    temporary_bytes=64 << 20,
    open_files=256,
    cpu_s=60,
)
# Nothing of a hook is read by this shell: it hands the file over as standard input and becomes the program.
_FED: Final = ("/bin/sh", "-c", 'exec "$@" <"$0"', EVENT)
# What the shell ends with, and says in its own name, when it cannot become the program.
_NOT_BECOME: Final = {
    126: "is not executable, or what its first line names behind #! is not. Make it so with chmod +x.",
    127: f"is not there, or what its first line names behind #! is not. {FOLDER} is what POPAGENT_HOOK_FOLDER names.",
}


class HookCommands:
    """Programs of one process, so many at once; each sees the operator's folder and an empty one of its own.

    Agents may write below `workspace_root`, so that no program is taken from there.
    """

    def __init__(self, folder: Path | None, workspace_root: Path) -> None:
        self.folder = None if folder is None else folder.expanduser().resolve()
        self._among_workspaces = self.folder is not None and _overlap(self.folder, workspace_root.resolve())
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def problem(self) -> str | None:
        """Return why no program can be run and what to do about it, None when one can."""
        if self.folder is None:
            return (
                "POPAGENT_HOOK_FOLDER does not name the folder that programs lie in. "
                "Set it in .env beside ./popagent, and start popagent again."
            )
        if self._among_workspaces:
            return "POPAGENT_HOOK_FOLDER and the workspace root overlap, where agents may write. Choose another folder."
        if not self.folder.is_dir():
            return "The folder that POPAGENT_HOOK_FOLDER names is not there."
        return (await confinement_found()).problem

    def program_problem(self, argv: Sequence[str]) -> str | None:
        """Return why this cannot be a program, as far as it can be seen from here; links may lead elsewhere there."""
        path = PurePosixPath(argv[0])
        if self.folder is None or not path.is_relative_to(FOLDER) or ".." in path.parts:
            return None
        file = self.folder
        for name in path.relative_to(FOLDER).parts:
            file /= name
            if os.path.islink(file):
                return None
        if not os.path.lexists(file):
            return f"{path} is not there: {FOLDER} is the folder that POPAGENT_HOOK_FOLDER names. Put it there."
        if not os.path.isfile(file):
            return f"{path} is no file."
        if not os.access(file, os.X_OK):
            return f"{path} is not executable. Make it so with chmod +x, in the folder that POPAGENT_HOOK_FOLDER names."
        return None

    async def printed(self, argv: Sequence[str], event: bytes) -> str:
        """Return what the program printed, both of its streams; cancelling this ends all of its processes.

        Raises:
            HookFailedError: It did not end well, or printed too much.
            ConfinementError: It could not be confined, so it was not run.
        """
        problem = await self.problem() or self.program_problem(argv)
        program = (await confinement_found()).program
        if problem is not None or program is None or self.folder is None:
            raise HookFailedError(f"cannot be run. {problem}")
        async with self._at_once:
            room = await asyncio.to_thread(tempfile.mkdtemp, prefix="popagent-hook-")
            try:
                return await self._run(program, argv, event, room)
            finally:
                await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)

    async def _run(self, program: str, argv: Sequence[str], event: bytes, room: str) -> str:
        with ExitStack() as held:
            workspace = os.open(room, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, workspace)
            plan = plan_for(
                program,
                [*_FED, *argv],
                workspace_fd=workspace,
                hidden=Hidden(),
                grant=Grant(mounts=(Mount(str(self.folder), FOLDER),)),
                limits=LIMITS,
                written={EVENT: event},
            )
            confined = await Confined.start(plan)
            ended = await confined.finish(LONGEST_S)
        total_bytes = confined.output.total_bytes
        printed = confined.output.take().head
        if total_bytes > LONGEST_OUTPUT:
            raise HookFailedError(f"printed more than {LONGEST_OUTPUT // 1024} kB", printed)
        if ended.status is None:
            raise HookFailedError(f"was ended: {ended.why}", printed)
        if ended.status in _NOT_BECOME and printed.startswith(f"{EVENT}: "):
            raise HookFailedError(f"cannot be run. {argv[0]} {_NOT_BECOME[ended.status]}")
        if ended.status != 0:
            raise HookFailedError(f"ended with status {ended.status}", printed)
        return printed


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
