"""Tasks: create, list, read, cancel, resolve, delete."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_db.pool import Connection
from popagent_kit.errors import InvalidInputError, KeyUsedError
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.common import WorkspaceClosingError
from popagent_proto.task_runner.activity import ActivityRecord, TranscriptPage
from popagent_proto.task_runner.tasks import (
    CancelTask,
    CreateTask,
    DeleteTask,
    GetTask,
    ListTasks,
    QueueFullError,
    ReadTranscript,
    ResolveTask,
    RetryTask,
    ScheduleBusyError,
    TaskChanged,
    TaskDeleted,
    TaskDetail,
    TaskList,
    TaskNotFoundError,
    TaskSummary,
    TaskView,
)
from popagent_task_runner.tasks import lists, making, store
from popagent_task_runner.tasks.causes import storable
from popagent_task_runner.tasks.deps import TaskDeps
from popagent_task_runner.tasks.ending import free_parent
from popagent_task_runner.tasks.states import after
from popagent_task_runner.tasks.transcript import MARK, NEWEST, PAGE_BYTES, SINCE

handlers = Handlers[TaskDeps]()

FULL_RETRY_AFTER_S: Final = 10.0


@handlers.answers(CreateTask)
async def create_task(deps: TaskDeps, command: CreateTask) -> TaskSummary:
    """Store the task, if its workspace, agent and model are known and its queue has room.

    While there is room and the time is known, it is stored at once; what is there already is looked at when it was not.
    """
    body = command.body
    workspace_id = await deps.check(body.workspace_id, body.agent_id, body.model)
    look = command.unless_scheduled
    while True:
        to_count = deps.room.to_count(workspace_id)
        now = None if look or to_count else deps.creations.clock.now()
        if now is None:
            seen = await _seen(deps, command, workspace_id, to_count)
            if seen.task is not None:
                return _repeated(command, seen.task)
            now = seen.now
        new = making.new_task(
            task_id=command.command_id,
            prompt=body.prompt,
            workspace_id=workspace_id,
            now=now,
            max_attempts=body.max_attempts,
            source=command.source,
            workflow=command.workflow,
            agent_id=body.agent_id,
            model=body.model,
            session_id=command.session_id,
            schedule_id=command.schedule_id,
            priority=body.priority,
        )
        if await deps.creations.store(new):
            break
        look = True  # the same command came twice, or its workspace was closed
    deps.outbox.wake()
    deps.tasks.wake()
    return new.task


async def _seen(deps: TaskDeps, command: CreateTask, workspace_id: str, to_count: int) -> store.Seen:
    """Return the time, and the task if it is there already.

    Raises:
        WorkspaceClosingError, ScheduleBusyError, QueueFullError: It is not, and must not be made.
    """
    async with deps.pool.acquire() as conn:
        seen = await store.SEEN.one(conn, command.command_id, workspace_id, to_count)
        deps.creations.clock.told(seen.now)
        if seen.task is not None:
            return seen
        if seen.closed:
            raise WorkspaceClosingError
        if command.unless_scheduled:
            earlier = await store.ACTIVE_OF_SCHEDULE.first(conn, command.schedule_id)
            if earlier is not None:
                raise ScheduleBusyError(f"Task {earlier} of an earlier time still waits or runs.")
    if to_count and not deps.room.counted(workspace_id, seen.waiting):
        raise QueueFullError(retry_after_s=FULL_RETRY_AFTER_S)
    return seen


def _repeated(command: CreateTask, task: TaskDetail) -> TaskSummary:
    """Return the stored task, if this is the command that made it."""
    body = command.body
    asked = (body.prompt, body.agent_id, body.model, body.priority, command.source, command.workflow)
    stored = (task.prompt, task.agent_id, task.model, task.priority, task.source, task.workflow)
    if asked != stored or body.workspace_id not in (None, task.workspace_id):
        raise KeyUsedError
    return summary_of(task)


def summary_of(task: TaskDetail) -> TaskSummary:
    """Return what lists show of the task."""
    return TaskSummary.model_validate(task.model_dump(include=set(TaskSummary.model_fields)))


@handlers.answers(ListTasks)
async def list_tasks(deps: TaskDeps, query: ListTasks) -> TaskList:
    """Return one page, newest first."""
    return await lists.page(deps.pool, query)


@handlers.answers(GetTask)
async def get_task(deps: TaskDeps, query: GetTask) -> TaskView:
    """Return the task with the newest page of its transcript."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        task = await store.GET.first(conn, query.task_id)
        if task is None:
            raise TaskNotFoundError
        records, previous = await _newest(conn, task.id, None, query.limit) if query.limit else ([], None)
        mark = await MARK.one(conn, task.id)
    return TaskView(**task.model_dump(), activity=records, previous_cursor=previous, revision=mark.revision)


@handlers.answers(ReadTranscript)
async def read_transcript(deps: TaskDeps, query: ReadTranscript) -> TranscriptPage:
    """Return a page before a record, or what was written since a revision."""
    if query.before is not None and query.after is not None:
        raise InvalidInputError("Give `before` or `after`, not both.", field="after")
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        mark = await MARK.first(conn, query.task_id)
        if mark is None:
            raise TaskNotFoundError
        if query.after is None:
            records, previous = await _newest(conn, query.task_id, query.before, query.limit)
            return TranscriptPage(
                task_id=query.task_id, records=records, previous_cursor=previous, revision=mark.revision
            )
        written = [row.view() for row in await SINCE.all(conn, query.task_id, query.after, query.limit, PAGE_BYTES)]
    return TranscriptPage(
        task_id=query.task_id,
        records=sorted(written, key=lambda record: record.seq),
        previous_cursor=None,
        revision=max((record.revision for record in written), default=max(query.after, mark.revision)),
    )


async def _newest(
    conn: Connection, task_id: str, before: int | None, limit: int
) -> tuple[list[ActivityRecord], int | None]:
    """Return records, oldest first, and the cursor of those before them."""
    rows = await NEWEST.all(conn, task_id, before, limit + 1, PAGE_BYTES)
    records = [row.view() for row in rows[:limit]][::-1]
    if not records:
        return [], None
    more = len(rows) > limit or bool(await NEWEST.all(conn, task_id, records[0].seq, 1, PAGE_BYTES))
    return records, records[0].seq if more else None


@handlers.answers(CancelTask)
async def cancel_task(deps: TaskDeps, command: CancelTask) -> TaskSummary:
    """Cancel what waits; ask what runs to end."""
    async with deps.outbox.transaction() as conn:
        task = await _locked(conn, command.task_id)
        state = after(task.state, "cancel")
        if state == task.state:
            return task
        statement = store.CANCEL_WAITING if state == "cancelled" else store.REQUEST_STOP
        task = await _changed(deps, conn, await statement.one(conn, task.id))
        if state == "cancelled":
            await free_parent(conn, deps.outbox, task)
    if state == "cancelled":
        deps.tasks.wake()
    else:
        deps.tasks.wake_for_stops()
    return task


@handlers.answers(ResolveTask)
async def resolve_task(deps: TaskDeps, command: ResolveTask) -> TaskSummary:
    """Call the task completed, with the evidence for it; what it said of its failure goes."""
    async with deps.outbox.transaction() as conn:
        task = await _locked(conn, command.task_id)
        after(task.state, "resolve")
        evidence = storable(command.body.evidence, len(command.body.evidence))
        return await _changed(deps, conn, await store.RESOLVE.one(conn, task.id, evidence))


@handlers.answers(RetryTask)
async def retry_task(deps: TaskDeps, command: RetryTask) -> TaskSummary:
    """Let the task wait for one more attempt, which is told what the earlier ones had begun."""
    async with deps.outbox.transaction() as conn:
        task = await _locked(conn, command.task_id)
        after(task.state, "retry")
        task = await _changed(deps, conn, await store.RETRY.one(conn, task.id))
    deps.tasks.wake()
    return task


@handlers.answers(DeleteTask)
async def delete_task(deps: TaskDeps, command: DeleteTask) -> DeletedView:
    """Delete the task and its transcript; what it changed in a repository stays."""
    async with deps.outbox.transaction() as conn:
        task = await _locked(conn, command.task_id)
        after(task.state, "delete")
        await store.DELETE.run(conn, task.id)
        await deps.outbox.add(conn, TaskDeleted(aggregate_id=task.id, version=task.version + 1, task_id=task.id))
    return DeletedView(id=task.id)


async def _locked(conn: Connection, task_id: str) -> TaskSummary:
    task = await store.LOCK.first(conn, task_id)
    if task is None:
        raise TaskNotFoundError
    return task


async def _changed(deps: TaskDeps, conn: Connection, task: TaskSummary) -> TaskSummary:
    await deps.outbox.add(conn, TaskChanged(aggregate_id=task.id, version=task.version, task=task))
    return task
