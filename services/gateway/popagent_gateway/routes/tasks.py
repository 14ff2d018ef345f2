"""Tasks: list, create, read, cancel, resolve, try again, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from popagent_gateway.asking import Bus, CommandId, Hub, OpenStreams, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.paging import TaskFilter, TaskRecords, TranscriptRange
from popagent_gateway.streams.sse import EventStream
from popagent_gateway.streams.task import TaskFeed
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.task_runner.activity import TranscriptPage
from popagent_proto.task_runner.tasks import (
    CancelTask,
    CreateTask,
    CreateTaskBody,
    DeleteTask,
    GetTask,
    ReadTranscript,
    ResolveTask,
    ResolveTaskBody,
    RetryTask,
    TaskList,
    TaskSummary,
    TaskView,
)

router = APIRouter(prefix="/api/tasks", tags=["tasks"], route_class=JsonRoute)


@router.get("")
async def list_tasks(bus: Bus, page: Annotated[TaskFilter, Query()]) -> TaskList:
    """List tasks, newest first, without their text; cheap however often it is asked."""
    return await bus.ask(page.query())


@router.post("", status_code=201)
async def create_task(bus: Bus, body: CreateTaskBody, command_id: CommandId) -> TaskSummary:
    """Store a task; it runs when a place is free, and goes on when nobody watches."""
    return await bus.ask(CreateTask(command_id=command_id, body=body))


@router.get("/{id}")
async def get_task(bus: Bus, id: PathId, page: Annotated[TaskRecords, Query()]) -> TaskView:  # noqa: A002
    """Return a task with the newest records of its transcript."""
    return await bus.ask(GetTask(task_id=id, **page.model_dump()))


@router.get("/{id}/transcript")
async def read_transcript(bus: Bus, id: PathId, page: Annotated[TranscriptRange, Query()]) -> TranscriptPage:  # noqa: A002
    """Return the records before one, or what was written since a revision."""
    return await bus.ask(ReadTranscript(task_id=id, **page.model_dump()))


@router.get("/{id}/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def follow_task(
    hub: Hub,
    closing: OpenStreams,
    id: PathId,  # noqa: A002
    last_event_id: Annotated[str | None, Header(max_length=100, description="Where the client stopped.")] = None,
) -> Response:
    """Stream records that are new or grew, and the task as it changes, its end behind the last record."""
    feed = TaskFeed(hub, id, last_event_id)
    await feed.open()
    return EventStream(feed, closing)


@router.post("/{id}/cancel")
async def cancel_task(bus: Bus, id: PathId) -> TaskSummary:  # noqa: A002
    """Cancel a task; one that runs is `cancelling` until it has ended."""
    return await bus.ask(CancelTask(task_id=id))


@router.post("/{id}/resolve")
async def resolve_task(bus: Bus, id: PathId, body: ResolveTaskBody) -> TaskSummary:  # noqa: A002
    """Call a task that did not complete done, with the evidence for it."""
    return await bus.ask(ResolveTask(task_id=id, body=body))


@router.post("/{id}/retry")
async def retry_task(bus: Bus, id: PathId) -> TaskSummary:  # noqa: A002
    """Give a failed or dead-lettered task one more attempt, which is told what the earlier ones had begun."""
    return await bus.ask(RetryTask(task_id=id))


@router.delete("/{id}")
async def delete_task(bus: Bus, id: PathId) -> DeletedView:  # noqa: A002
    """Delete a task that has ended; what it changed in a repository stays."""
    return await bus.ask(DeleteTask(task_id=id))
