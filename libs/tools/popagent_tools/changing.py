"""The tools that change files of the run's workspace; each tells in few words what it changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_kit.errors import ForbiddenError
from popagent_sandbox import making, moving, removing, writing
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.diff import diff
from popagent_sandbox.errors import PathMissingError
from popagent_sandbox.paths import printable
from popagent_sandbox.replacing import Stopped
from popagent_tools.files import with_similar
from popagent_tools.workspace import room, workspace_of

T = TypeVar("T")

TIMEOUT_S: Final = 30.0
# How long a call that was ended is waited for: until then it has changed what it was to change, or never will.
SETTLE_S: Final = 4.0
FEWEST_CHARACTERS: Final = 400


class ReadOnlyError(ForbiddenError):
    """This run may read the workspace and change nothing."""

    code = "read_only"


@tool("edit", access="write", timeout_s=TIMEOUT_S)
async def edit_file(run: RunContext, path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
    """Replace text in a file that you have read. old_string is exact and occurs once, unless replace_all is true."""
    folder = _writable(run)
    try:
        change = await _settled(
            lambda stopped: writing.edit_text(
                folder, path, old_string, new_string, run.reads, everywhere=replace_all, stopped=stopped
            )
        )
    except PathMissingError as error:
        raise await with_similar(folder, path, error) from error
    return await asyncio.to_thread(_changed, run, "Edited", change)


@tool("write", access="write", timeout_s=TIMEOUT_S)
async def write_file(run: RunContext, path: str, content: str) -> str:
    """Make a new text file, or replace the whole text of a file that you have read. For a part of it use edit."""
    folder = _writable(run)
    change = await _settled(lambda stopped: writing.write_text(folder, path, content, run.reads, stopped=stopped))
    return await asyncio.to_thread(_changed, run, "Wrote", change)


@tool("delete", access="write", timeout_s=TIMEOUT_S)
async def delete_file(run: RunContext, path: str, recursive: bool = False) -> str:
    """Delete a file or an empty folder. With recursive=true, delete a folder and everything in it."""
    folder = _writable(run)
    removed = await _settled(
        lambda stopped: removing.delete_path(folder, path, run.reads, recursive=recursive, stopped=stopped)
    )
    name = printable(removed.path)
    if not removed.is_folder:
        return f"Deleted {name}."
    inside = removed.entries - 1
    return f"Deleted the folder {name}" + (f" and {inside} files and folders in it." if inside else ".")


@tool("move", access="write", timeout_s=TIMEOUT_S)
async def move_file(run: RunContext, path: str, new_path: str) -> str:
    """Move or rename a file or folder. Nothing may be at new_path yet."""
    folder = _writable(run)
    moved = await _settled(lambda stopped: moving.move_path(folder, path, new_path, run.reads, stopped=stopped))
    return f"Moved {printable(moved.source)} to {printable(moved.target)}."


@tool("mkdir", access="write", timeout_s=TIMEOUT_S)
async def make_folder(run: RunContext, path: str) -> str:
    """Make an empty folder. Not needed before write, which makes the folders of its file."""
    folder = _writable(run)
    made = await _settled(lambda _: making.make_folder(folder, path))
    return f"Made the folder {printable(made[-1])}." if made else f"There is a folder {printable(path)} already."


def _writable(run: RunContext) -> ContainedFolder:
    """The run's policy has refused before; this holds where a workspace and a policy do not agree."""
    workspace = workspace_of(run)
    if workspace.access != "read-write":
        raise ReadOnlyError
    return workspace.folder


async def _settled(work: Callable[[Stopped], T]) -> T:
    """Run `work` in a thread; a call that is ended lets it stop first, so that nothing changes after it was told."""
    stopped = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stopped.is_set))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.wait([running], timeout=SETTLE_S)
        if running.done() and not running.cancelled():
            running.exception()  # looked at: it is the refusal to go on, or what nobody waits for any more
        raise


def _changed(run: RunContext, done: str, change: writing.Change) -> str:
    name = printable(change.path)
    if change.before is None:
        lines = change.after.count(b"\n") + (not change.after.endswith(b"\n") and bool(change.after))
        return f"Made {name} ({lines} {'line' if lines == 1 else 'lines'})."
    if change.before == change.after:
        return f"{name} holds this text already. Nothing was changed."
    found = diff(change.before, change.after, characters=room(run, FEWEST_CHARACTERS))
    head = f"{done} {name}: lines +{found.added} -{found.removed}."
    rest = "\n(the rest is not shown)" if found.cut and found.text else ""
    return f"{head}\n{found.text}{rest}" if found.text else head
