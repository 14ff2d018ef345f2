"""Clone a repository below the workspace root and register it, as a job; nobody sees a clone before it is whole."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import uuid
from pathlib import Path
from typing import Any, Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.workspaces import store
from popagent_chat.workspaces.handlers import WorkspaceExistsError
from popagent_kit.errors import ConflictError, KeyUsedError
from popagent_proto.chat.workspaces import CloneWorkspace, WorkspaceRegistered, WorkspaceView
from popagent_proto.common import JobView
from popagent_rows.jobs import Job
from popagent_sandbox import cloning
from popagent_sandbox.clone_address import source_of
from popagent_sandbox.git_run import git_program
from popagent_sandbox.renameat2 import rename_new

log = logging.getLogger(__name__)

handlers = Handlers[ChatDeps]()

KIND: Final = "workspaces-clone"
# Of the folder that an attempt works in: hidden, on the file system of the root, and named by job and attempt.
PREFIX: Final = ".cloning-"
# In the git dir of a clone until it is registered: tells an attempt what the one before it had made.
MARK: Final = "popagent-clone"
SWEEP_EVERY_S: Final = 60.0
_BY_COMMAND: Final = uuid.UUID("8c5a3b5e-2d3f-4b52-9a53-0d6f5c1f7a10")


class DirectoryTakenError(ConflictError):
    """There is something at this place below the workspace root already."""

    code = "directory_taken"


class CloneUnderWayError(ConflictError):
    """Another repository is being cloned to this place."""

    code = "clone_under_way"


@handlers.answers(CloneWorkspace)
async def clone_workspace(deps: ChatDeps, command: CloneWorkspace) -> JobView:
    """Store the job, whose id follows from the command's."""
    source = source_of(command.body.url, command.body.directory)
    git_program()
    taken = await asyncio.to_thread(os.path.lexists, deps.workspace_root / source.folder)
    asked = {
        "workspaceId": command.command_id,
        "url": source.url,
        "folder": source.folder,
        "name": command.body.name or source.folder,
    }
    job_id = deps.jobs.id_of(uuid.uuid5(_BY_COMMAND, command.command_id))
    async with deps.outbox.transaction() as conn:
        # Held by whoever asks for a clone, so that one directory is promised once.
        await store.LOCK_CLONES.one(conn)
        known = await deps.jobs.get(conn, job_id)
        if known is not None:
            if await deps.jobs.input_of(conn, job_id) != asked:
                raise KeyUsedError
            return known
        registered = await store.BY_PATH.first(conn, source.folder)
        if registered is not None:
            raise WorkspaceExistsError.as_stored(registered, field="directory")
        if taken:
            raise DirectoryTakenError(
                f"There is something at {source.folder} below the workspace root. Choose another directory, or "
                "register that one.",
                field="directory",
            )
        job = await deps.jobs.enqueue(
            conn,
            KIND,
            asked,
            job_id=job_id,
            key=source.folder,
            again=True,
            title=f"Clone into {source.folder}",
            about=command.command_id,
        )
        if job.id != job_id:
            raise CloneUnderWayError(extra={"job": job.wire()}, field="directory")
    deps.jobs.worker.wake()
    return job


async def clone(deps: ChatDeps, job: Job) -> dict[str, Any]:
    """Carry out the job; an attempt after a kill begins anew, unless the folder had its name already."""
    target = deps.workspace_root / job.input["folder"]
    async with deps.pool.acquire() as conn:
        workspace = await store.GET.first(conn, job.input["workspaceId"])
    if workspace is None:
        if not await asyncio.to_thread(_was_made_by, target, job.id):
            await _make(deps, job, target)
        workspace = await _register(deps, job)
    await asyncio.to_thread((target / ".git" / MARK).unlink, missing_ok=True)
    return {"workspaceId": workspace.id, "path": workspace.path}


async def _make(deps: ChatDeps, job: Job, target: Path) -> None:
    await sweep(deps)
    making = deps.workspace_root / f"{PREFIX}{job.id}-{job.attempt}"
    try:
        await asyncio.to_thread(making.mkdir, mode=0o700)
        made = making / target.name
        await cloning.clone(job.input["url"], made, deps.clone_bounds, job.report)
        job.lease.check()
        await asyncio.to_thread(_give_its_name, made, target, job.id)
    except FileExistsError as error:
        raise DirectoryTakenError from error
    except OSError as error:
        raise ConflictError(f"Nothing can be written below the workspace root: {error.strerror}.") from error
    finally:
        await asyncio.to_thread(shutil.rmtree, making, ignore_errors=True)


def _give_its_name(made: Path, target: Path, job_id: str) -> None:
    """Mark the clone and move it, never over something."""
    mark = os.open(made / ".git" / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(mark, "w", encoding="ascii") as file:
        file.write(job_id)
    folders = [os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for each in (made.parent, target.parent)]
    try:
        rename_new(folders[0], made.name, folders[1], target.name)
    finally:
        for folder in folders:
            os.close(folder)


def _was_made_by(target: Path, job_id: str) -> bool:
    try:
        mark = os.open(target / ".git" / MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(mark, "rb") as file:
        return file.read(100) == job_id.encode()


async def _register(deps: ChatDeps, job: Job) -> WorkspaceView:
    async with deps.outbox.transaction() as conn:
        await job.lease.fence(conn)
        created = await store.INSERT.first(conn, job.input["workspaceId"], job.input["name"], job.input["folder"])
        if created is None:
            raise WorkspaceExistsError
        event = WorkspaceRegistered(aggregate_id=created.id, version=created.revision, workspace=created)
        await deps.outbox.add(conn, event)
    return created


async def sweep(deps: ChatDeps) -> None:
    """Remove what clones left that were cut off; those that are under way, in any process, are left alone."""
    root = deps.workspace_root
    found = await asyncio.to_thread(lambda: [each.name for each in root.glob(f"{PREFIX}*")])
    if not found:
        return
    async with deps.pool.acquire() as conn:
        running = {f"{PREFIX}{each.id}-{each.attempt}" for each in await deps.jobs.running(conn, KIND)}
    for name in set(found) - running:
        log.info("a clone that was cut off is removed", extra={"folder": name})
        await asyncio.to_thread(shutil.rmtree, root / name, ignore_errors=True)
