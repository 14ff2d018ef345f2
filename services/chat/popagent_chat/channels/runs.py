"""Posts that start tasks, and tasks that say something in channels."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from popagent_bus import Handlers
from popagent_chat.agents import store as agents
from popagent_chat.channels import store
from popagent_chat.channels.saying import Kind, no_task, output_of, prompt_of, trouble_of
from popagent_chat.channels.store import MessageRow, WaitingRun
from popagent_chat.channels.writing import add, lock_channel, locked_message, told
from popagent_chat.deps import ChatDeps
from popagent_db.pool import Connection
from popagent_kit.errors import AppError, ConflictError, NotFoundError
from popagent_kit.ids import new_id
from popagent_kit.text import excerpt, one_line
from popagent_proto.chat.agents import ORCHESTRATOR
from popagent_proto.chat.channels import (
    BODY_CHARACTERS,
    GENERAL,
    AuthorKind,
    CancelMessageRun,
    ChannelMessage,
    NoRunError,
)
from popagent_proto.matrix import event_consumer
from popagent_proto.task_runner.tasks import (
    EVENT_EXCERPT_CHARACTERS,
    CancelTask,
    CreateTask,
    CreateTaskBody,
    GetTask,
    TaskChanged,
    TaskStarted,
    TaskStateError,
    TaskStopped,
    TaskSummary,
    TaskView,
)
from popagent_rows import inbox
from popagent_telemetry import redact

log = logging.getLogger(__name__)

handlers = Handlers[ChatDeps]()

CONSUMER: Final = event_consumer("chat")
PLATFORM: Final[tuple[AuthorKind, str, str]] = ("system", "popagent", "popagent")
AT_ONCE: Final = 10
# Longer than an answer may take.
HELD_S: Final = 30.0
LONGEST_WAIT_S: Final = 60.0
EARLIER: Final = 20
EARLIER_BYTES: Final = 100_000
NOTE_CHARACTERS: Final = 300
TROUBLE: Final[tuple[Kind, ...]] = ("failed", "dead-letter")
# Of a run that was cancelled before its task was made; every version of the task is higher.
NO_VERSION: Final = -1
LOOK_EVERY_S: Final = 30.0
DELETED: Final = "Its task was deleted."


class Handing:
    """Makes the tasks of posts whenever it is woken, until none is left to make."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look now."""
        self._woken.set()

    async def run(self, deps: ChatDeps) -> None:
        """Work until cancelled; what fails is tried again when the pulse wakes it."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                while await hand_over(deps):
                    pass
            except AppError as error:
                log.info("tasks of posts are put off", extra={"reason": error.message})
            except Exception:  # a post that cannot be read must not end the process that everybody chats with
                log.exception("tasks of posts could not be made")


async def hand_over(deps: ChatDeps) -> bool:
    """Make tasks of the posts that wait; true when there may be more."""
    async with deps.pool.transaction() as conn:
        taken = await store.TAKE_WAITING.all(conn, AT_ONCE, HELD_S)
    await asyncio.gather(*(_hand_over(deps, run) for run in taken))
    return len(taken) == AT_ONCE


async def _hand_over(deps: ChatDeps, run: WaitingRun) -> None:
    try:
        task = await _task_of(deps, run)
    except AppError as error:
        if error.retryable or error.http_status >= 500:
            wait_s = error.retry_after_s or min(LONGEST_WAIT_S, 2.0 ** min(run.run_tries, 6))
            log.info("the task of a post waits", extra={"post": run.id, "reason": error.message})
            async with deps.pool.acquire() as conn:
                await store.PUT_OFF.run(conn, run.id, wait_s)
        else:
            await _refused(deps, run, error.message)
        return
    async with deps.outbox.transaction() as conn:
        await _follow(conn, deps, task)


async def _task_of(deps: ChatDeps, run: WaitingRun) -> TaskSummary:
    """Ask for the task; asked again after a crash, it is the one that was made then, whatever was edited since."""
    async with deps.pool.acquire() as conn:
        channel = await store.GET.first(conn, run.channel_id)
        earlier: list[MessageRow] = []
        if run.thread_id is not None:
            earlier = await store.HISTORY.all(conn, run.channel_id, run.seq, EARLIER, EARLIER_BYTES, run.thread_id)
    prompt = prompt_of(run.body, channel.title if channel else run.channel_id, earlier)
    body = CreateTaskBody(prompt=prompt, workspace_id=run.workspace_id, agent_id=run.run_agent_id)
    try:
        return await deps.bus.ask(CreateTask(command_id=run.id, body=body))
    except ConflictError:
        return await deps.bus.ask(GetTask(task_id=run.id, limit=0))


async def _refused(deps: ChatDeps, run: WaitingRun, reason: str) -> None:
    """Say in the thread why there is no task."""
    async with deps.outbox.transaction() as conn:
        row = await locked_message(conn, run.channel_id, run.id)
        if row.run_state != "waiting":
            return
        note = one_line(redact(reason), NOTE_CHARACTERS)
        change = store.SET_RUN.one(conn, row.channel_id, row.id, "failed", note, row.run_version)
        await told(conn, deps.outbox, change)
        await add(
            conn,
            deps.outbox,
            message_id=new_id(),
            channel_id=row.channel_id,
            author=PLATFORM,
            body=no_task(note),
            thread_id=row.thread_id or row.id,
        )


@handlers.answers(CancelMessageRun)
async def cancel_run(deps: ChatDeps, command: CancelMessageRun) -> ChannelMessage:
    """Cancel the task; one that is not made yet is cancelled when it is heard of."""
    async with deps.outbox.transaction() as conn:
        row = await locked_message(conn, command.channel_id, command.message_id)
        if row.run_state is None:
            raise NoRunError
        if row.run_state == "waiting":
            change = store.SET_RUN.one(conn, row.channel_id, row.id, "cancelled", "", NO_VERSION)
            return (await told(conn, deps.outbox, change)).view
        if row.run_state == "cancelled":
            return row.view
    try:
        task = await deps.bus.ask(CancelTask(task_id=row.id))
    except NotFoundError:
        raise NoRunError("The task that this message started was deleted.") from None
    async with deps.outbox.transaction() as conn:
        await _follow(conn, deps, task)
        return (await store.MESSAGE.one(conn, row.id)).view


@handlers.hears(TaskChanged)
async def task_changed(deps: ChatDeps, event: TaskChanged) -> None:
    """Show the state, and say that it failed when no attempt told of it."""
    await _hear(deps, event.event_id, event.task, event.task.attempt_count, None)


@handlers.hears(TaskStarted)
async def task_started(deps: ChatDeps, event: TaskStarted) -> None:
    """Show the state."""
    await _hear(deps, event.event_id, event.task, event.attempt, None)


@handlers.hears(TaskStopped)
async def task_stopped(deps: ChatDeps, event: TaskStopped) -> None:
    """Show the state, and post what came of it when nothing follows."""
    await _hear(deps, event.event_id, event.task, event.attempt, event.excerpt)


async def _hear(deps: ChatDeps, event_id: str, task: TaskSummary, attempt: int, said: str | None) -> None:
    post = _post_of(task, said)
    async with deps.pool.acquire() as conn:
        asked_by = await store.MESSAGE.first(conn, task.id)
    started = asked_by is not None and asked_by.run_state is not None
    if not started and post is None:
        return
    if asked_by is not None and _was_cancelled_before(asked_by) and task.state in ("queued", "running"):
        await _cancel(deps, task)  # before the event counts as heard: it comes again if this fails
    async with deps.outbox.transaction() as conn:
        if not await inbox.once(conn, CONSUMER, event_id):
            return
        asked_by = await _follow(conn, deps, task)
        if post is not None:
            await _post(conn, deps, task, asked_by, (attempt, *post))


async def _cancel(deps: ChatDeps, task: TaskSummary) -> None:
    try:
        await deps.bus.ask(CancelTask(task_id=task.id))
    except (NotFoundError, TaskStateError) as error:
        log.info("a task that was to be cancelled is over", extra={"task": task.id, "reason": error.message})


async def look_after(deps: ChatDeps) -> None:
    """Ask for tasks of which nothing was heard for minutes: what told of them may be lost."""
    async with deps.pool.transaction() as conn:
        silent = await store.TAKE_SILENT.all(conn, AT_ONCE)
    for message_id in silent:
        try:
            task = await deps.bus.ask(GetTask(task_id=message_id, limit=0))
        except NotFoundError:
            await _forgotten(deps, message_id)
        else:
            await _caught_up(deps, task)


async def _caught_up(deps: ChatDeps, task: TaskView) -> None:
    post = _post_of(task, excerpt(task.output, EVENT_EXCERPT_CHARACTERS) if task.resolution is None else None)
    async with deps.outbox.transaction() as conn:
        asked_by = await _follow(conn, deps, task)
        if post is not None:
            await _post(conn, deps, task, asked_by, (task.attempt_count, *post))


async def _forgotten(deps: ChatDeps, message_id: str) -> None:
    async with deps.outbox.transaction() as conn:
        known = await store.MESSAGE.one(conn, message_id)
        row = await locked_message(conn, known.channel_id, message_id)
        change = store.SET_RUN.one(conn, row.channel_id, row.id, "failed", DELETED, row.run_version)
        await told(conn, deps.outbox, change)


def _post_of(task: TaskSummary, said: str | None) -> tuple[Kind, str] | None:
    if task.state == "completed" and said is not None:  # not one that a person called done
        return "completed", output_of(task, said)
    kind: Kind | None = next((kind for kind in TROUBLE if kind == task.state), None)
    return None if kind is None else (kind, trouble_of(task, kind))


async def _post(
    conn: Connection, deps: ChatDeps, task: TaskSummary, asked_by: MessageRow | None, what: tuple[int, Kind, str]
) -> None:
    """Write it, once for an attempt and a kind, into the thread of the post that asked for it, else to #general."""
    attempt, kind, text = what
    channel_id = GENERAL if asked_by is None else asked_by.channel_id
    await lock_channel(conn, channel_id)
    await add(
        conn,
        deps.outbox,
        message_id=new_id(),
        channel_id=channel_id,
        author=await _author(conn, task, kind),
        body=redact(text)[:BODY_CHARACTERS],
        thread_id=None if asked_by is None else asked_by.thread_id or asked_by.id,
        workspace_id=task.workspace_id,
        of_task=(task.id, attempt, kind),
    )


async def _author(conn: Connection, task: TaskSummary, kind: Kind) -> tuple[AuthorKind, str, str]:
    if kind != "completed":
        return PLATFORM
    agent_id = task.agent_id or ORCHESTRATOR
    agent = await agents.GET.first(conn, agent_id)
    return "agent", agent_id, agent.name if agent else agent_id


async def _follow(conn: Connection, deps: ChatDeps, task: TaskSummary) -> MessageRow | None:
    """Show the task's state at the message that started it, which is returned; what is older is not shown."""
    known = await store.MESSAGE.first(conn, task.id)
    if known is None or known.run_state is None:
        return None
    row = await locked_message(conn, known.channel_id, known.id)
    if task.version <= row.run_version or (_was_cancelled_before(row) and task.state != "cancelled"):
        return row
    if task.state == row.run_state:
        await store.KEEP_RUN.run(conn, row.id, task.version)
        return row
    change = store.SET_RUN.one(conn, row.channel_id, row.id, task.state, "", task.version)
    return await told(conn, deps.outbox, change)


def _was_cancelled_before(row: MessageRow) -> bool:
    return row.run_state == "cancelled" and row.run_version == NO_VERSION
