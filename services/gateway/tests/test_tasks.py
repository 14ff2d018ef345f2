from __future__ import annotations

import httpx2

from popagent_kit.clock import now
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.task_runner.activity import ActivityRecord, TranscriptPage
from popagent_proto.task_runner.tasks import (
    CancelTask,
    CreateTask,
    CreateTaskBody,
    DeleteTask,
    GetTask,
    ListTasks,
    QueueFullError,
    ReadTranscript,
    ResolveTask,
    ResolveTaskBody,
    RetryTask,
    TaskList,
    TaskStateError,
    TaskSummary,
    TaskView,
)

from .conftest import Owner

TASK = TaskSummary(
    id="t1",
    title="Count.",
    state="queued",
    source="user",
    workspace_id="w1",
    workflow=False,
    agent_id=None,
    model=None,
    session_id=None,
    schedule_id=None,
    remediates=None,
    priority=0,
    attempt_count=0,
    max_attempts=3,
    next_attempt_at=now(),
    last_error_class=None,
    last_error=None,
    dead_lettered_at=None,
    interrupted_at=None,
    turn_id=None,
    trace_id=None,
    excerpt="",
    version=0,
    created_at=now(),
    started_at=None,
    ended_at=None,
)
RECORD = ActivityRecord(seq=1, revision=1, attempt=1, at=now(), kind="text", text="I count.")
VIEW = TaskView(
    **TASK.model_dump(),
    prompt="Count.",
    output="",
    explanation=None,
    resolution=None,
    remediation_id=None,
    activity=[RECORD],
    previous_cursor=None,
    revision=1,
)


async def test_tasks_are_read_from_their_owner(http: httpx2.AsyncClient, task_runner: Owner) -> None:
    task_runner.answer(ListTasks, TaskList(items=[TASK], next_cursor="n"))
    task_runner.answer(GetTask, VIEW)
    task_runner.answer(ReadTranscript, TranscriptPage(task_id="t1", records=[RECORD], previous_cursor=None, revision=1))

    listed = await http.get("/api/tasks?state=failed,queued&workspaceId=w1&source=user&q=Count&limit=7&cursor=abc")
    asked_list = task_runner.last()
    shown = await http.get("/api/tasks/t1?limit=0")
    asked_task = task_runner.last()
    followed = await http.get("/api/tasks/t1/transcript?after=12")

    assert asked_list == ListTasks(
        state=["queued", "failed"], workspace_id="w1", source="user", q="Count", limit=7, cursor="abc"
    )
    assert listed.json() == {"items": [TASK.wire()], "nextCursor": "n"}
    assert "activity" not in listed.text
    assert asked_task == GetTask(task_id="t1", limit=0)
    assert shown.json() == VIEW.wire()
    assert task_runner.last() == ReadTranscript(task_id="t1", after=12)
    assert followed.json()["records"] == [RECORD.wire()]


async def test_changes_reach_their_owner_and_no_client_says_whose_work_it_is(
    http: httpx2.AsyncClient, task_runner: Owner
) -> None:
    task_runner.answer(CreateTask, TASK)
    task_runner.answer(CancelTask, TASK)
    task_runner.answer(ResolveTask, TASK)
    task_runner.answer(RetryTask, TASK)
    task_runner.answer(DeleteTask, DeletedView(id="t1"))

    made = await http.post("/api/tasks", json={"prompt": "Count."}, headers={"idempotency-key": "once-1"})
    asked = task_runner.last()
    cancelled = await http.post("/api/tasks/t1/cancel")
    resolved = await http.post("/api/tasks/t1/resolve", json={"evidence": "Seen."})
    asked_resolve = task_runner.last()
    retried = await http.post("/api/tasks/t1/retry")
    asked_retry = task_runner.last()
    deleted = await http.delete("/api/tasks/t1")

    assert [each.status_code for each in (made, cancelled, resolved, retried, deleted)] == [201, 200, 200, 200, 200]
    assert asked == CreateTask(command_id="once-1", body=CreateTaskBody(prompt="Count."))
    assert (asked.source, asked.workflow) == ("user", False)
    assert asked_resolve == ResolveTask(task_id="t1", body=ResolveTaskBody(evidence="Seen."))
    assert asked_retry == RetryTask(task_id="t1")
    assert task_runner.last() == DeleteTask(task_id="t1")


async def test_a_full_queue_says_when_to_come_again_and_a_wrong_state_says_which(
    http: httpx2.AsyncClient, task_runner: Owner
) -> None:
    task_runner.answer(CreateTask, QueueFullError(retry_after_s=10))
    task_runner.answer(DeleteTask, TaskStateError("This task is running.", extra={"state": "running"}))

    full = await http.post("/api/tasks", json={"prompt": "Count."})
    active = await http.delete("/api/tasks/t1")

    assert (full.status_code, full.headers["retry-after"], full.json()["code"]) == (429, "10", "queue_full")
    assert active.status_code == 409
    assert active.json() == {"error": "This task is running.", "code": "task_state", "state": "running"}
