"""Create, list, read, cancel, resolve, try again, delete: over the real bus, in each state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.task_runner.tasks import (
    CancelTask,
    DeleteTask,
    GetTask,
    ListTasks,
    ReadTranscript,
    ResolveTask,
    ResolveTaskBody,
    RetryTask,
    TaskList,
)

STATES = ("queued", "running", "cancelling", "completed", "failed", "cancelled", "dead-letter")


async def put(pool: Pool, state: str, **more: Any) -> str:
    """Store a task in a state, beside the service; no runner takes it."""
    task_id = new_id()
    stored = "running" if state == "cancelling" else state
    columns: dict[str, Any] = {
        "id": task_id,
        "state": stored,
        "source": "user",
        "workspace_id": "home",
        "title": f"a {state} task",
        "prompt": "p",
        "max_attempts": 3,
        "stop_requested": state == "cancelling",
        **more,
    }
    if stored == "running":
        columns |= {"owner": new_id(), "boot_id": new_id()}
    names = ", ".join(columns)
    values = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    lease = ", lease_until" if stored == "running" else ""
    until = ", now() + interval '1 hour'" if stored == "running" else ""
    buried = ", dead_lettered_at, explanation" if state == "dead-letter" else ""
    why = ", now(), 'spent'" if state == "dead-letter" else ""
    failed = ", last_error_class, last_error" if state in {"failed", "dead-letter"} else ""
    error = ", 'unknown', 'It broke.'" if failed else ""
    later = ", run_at" if state == "queued" else ""
    when = ", now() + interval '1 hour'" if later else ""
    await pool.execute(
        f"insert into tasks ({names}{lease}{buried}{failed}{later}) values ({values}{until}{why}{error}{when})",
        *columns.values(),
    )
    return task_id


async def test_a_repeated_command_gives_the_stored_task_and_another_body_is_a_conflict(
    start: Any, door: Any, refusal: Any, pool: Pool
) -> None:
    await start(slots=0)
    key = new_id()

    both = await asyncio.gather(*(door.create("answer a", command_id=key, priority=2) for _ in range(4)))
    other = await refusal(door.create("answer b", command_id=key, priority=2))

    assert {task.id for task in both} == {key}
    assert other.http_status == 409
    assert await pool.fetchval("select count(*) from tasks") == 1
    assert await pool.fetchval("select count(*) from outbox where subject like '%tasks-changed%'") == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"workspace_id": "nowhere"}, "workspaceId"), ({"agent_id": "nobody"}, "agentId"), ({"model": "none"}, "model")],
)
async def test_what_is_not_there_is_refused_by_name(
    start: Any, door: Any, refusal: Any, fields: dict[str, str], field: str
) -> None:
    await start(slots=0)

    refused = await refusal(door.create(**fields))

    assert (refused.http_status, refused.field) == (422, field)


async def test_a_full_queue_refuses_its_workspace_alone_and_says_when_to_come_again(
    start: Any, door: Any, refusal: Any
) -> None:
    await start(slots=0, queue_depth=3)
    for _ in range(3):
        await door.create(workspace_id="north")

    refused = await refusal(door.create(workspace_id="north"))
    elsewhere = await door.create(workspace_id="south")

    assert (refused.http_status, refused.code, refused.retry_after_s) == (429, "queue_full", 10)
    assert elsewhere.state == "queued"


async def test_what_waits_is_cancelled_at_once_and_again_gives_the_same_answer(start: Any, door: Any) -> None:
    await start(slots=0)
    created = await door.create()

    first = await door.ask(CancelTask(task_id=created.id))
    again = await door.ask(CancelTask(task_id=created.id))

    assert (first.state, first.version) == ("cancelled", 1)
    assert again == first
    assert [verb for verb, _ in await door.until_told(created.id, 2)] == ["changed", "changed"]


async def test_what_runs_is_cancelled_when_it_has_ended(start: Any, door: Any) -> None:
    await start()
    created = await door.create("sleep 30")
    await door.until(created.id, "running")

    asked = await door.ask(CancelTask(task_id=created.id))
    task = await door.until(created.id, "cancelled", timeout_s=3)
    again = await door.ask(CancelTask(task_id=created.id))

    assert asked.state == "cancelling"
    assert (again.state, again.last_error_class, again.last_error) == ("cancelled", "cancelled", None)
    assert task.ended_at is not None


@pytest.mark.parametrize("state", STATES)
async def test_each_state_allows_what_it_allows_and_says_which_it_is(
    start: Any, door: Any, refusal: Any, pool: Pool, state: str
) -> None:
    await start(slots=0)
    evidence = ResolveTaskBody(evidence="I looked: it is there.")

    for request, allowed in (
        (lambda task_id: CancelTask(task_id=task_id), {"queued", "running", "cancelling", "cancelled"}),
        (lambda task_id: ResolveTask(task_id=task_id, body=evidence), {"failed", "cancelled", "dead-letter"}),
        (lambda task_id: RetryTask(task_id=task_id), {"failed", "dead-letter"}),
        (lambda task_id: DeleteTask(task_id=task_id), {"completed", "failed", "cancelled", "dead-letter"}),
    ):
        task_id = await put(pool, state)
        if state in allowed:
            await door.ask(request(task_id))
            continue
        refused = await refusal(door.ask(request(task_id)))
        assert (refused.http_status, refused.code, refused.extra) == (409, "task_state", {"state": state})
        assert f"This task is {state}." in refused.message


async def test_a_resolved_task_is_completed_keeps_its_evidence_and_says_nothing_of_its_failure(
    start: Any, door: Any, pool: Pool
) -> None:
    await start(slots=0)
    task_id = await put(pool, "dead-letter")

    await door.ask(ResolveTask(task_id=task_id, body=ResolveTaskBody(evidence="Done by hand.")))
    task = await door.get(task_id)

    assert (task.state, task.resolution) == ("completed", "Done by hand.")
    assert (task.last_error_class, task.last_error, task.dead_lettered_at, task.explanation) == (None,) * 4


async def test_what_is_tried_again_waits_for_one_more_attempt_and_runs_alone_where_its_runners_were_lost(
    start: Any, door: Any, pool: Pool
) -> None:
    await start(slots=0)
    spent = await put(pool, "dead-letter", attempt=3)
    poison = await put(pool, "dead-letter", attempt=3)
    await pool.execute("update tasks set last_error_class = 'runner-lost' where id = $1", poison)
    failed = await put(pool, "failed", attempt=1)

    for task_id in (spent, poison, failed):
        await door.ask(RetryTask(task_id=task_id))
    again = [await door.get(task_id) for task_id in (spent, poison, failed)]
    keys = await pool.fetch("select concurrency_key from tasks where id = any ($1) order by id", [spent, poison])

    assert [(task.state, task.attempt_count, task.max_attempts) for task in again] == [
        ("queued", 3, 4),
        ("queued", 3, 4),
        ("queued", 1, 3),
    ]
    assert {(task.explanation, task.dead_lettered_at, task.ended_at) for task in again} == {(None, None, None)}
    assert again[0].last_error == "It broke."
    assert [row[0] for row in keys] == [None, "alone"]
    assert [verb for verb, _ in await door.until_told(spent, 1)] == ["changed"]


async def test_a_deleted_task_is_gone_with_its_transcript(start: Any, door: Any, refusal: Any, pool: Pool) -> None:
    await start()
    created = await door.create("say hello\ncall read")
    await door.until(created.id, "completed")
    assert await pool.fetchval("select count(*) from task_activity") > 0

    await door.ask(DeleteTask(task_id=created.id))

    assert (await refusal(door.get(created.id))).http_status == 404
    assert (await refusal(door.ask(DeleteTask(task_id=created.id)))).http_status == 404
    assert await pool.fetchval("select count(*) from task_activity") == 0
    assert (await door.until_told(created.id, 4))[-1][0] == "deleted"


async def test_a_cancelled_remediation_sends_its_parent_back_too(start: Any, door: Any, pool: Pool) -> None:
    await start(slots=0)
    spent = await put(pool, "failed", attempt=3)
    parent = await put(pool, "failed", attempt=1)
    for failed in (parent, spent):
        await door.ask(CancelTask(task_id=await put(pool, "queued", remediates=failed)))

    assert (await door.get(parent)).state == "queued"
    buried = await door.get(spent)
    assert (buried.state, buried.explanation) == (
        "dead-letter",
        "Attempt 3 of 3 was the last: the last one failed (unknown). Nothing tries it again; a person decides.",
    )


async def pages(door: Any, **query: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page: TaskList = await door.ask(ListTasks(cursor=cursor, **query))
        assert len(page.items) <= query.get("limit", 50)
        found += [task.id for task in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_lists_are_filtered_and_paged_newest_first_without_a_gap(start: Any, door: Any, pool: Pool) -> None:
    await start(slots=0)
    made = [
        await put(pool, STATES[n % 7], workspace_id="north" if n % 2 else "south", schedule_id="s1" if n < 4 else None)
        for n in range(21)
    ]
    # Some were made in the same moment.
    await pool.execute("update tasks set created_at = date_trunc('milliseconds', created_at)")
    order = [str(row["id"]) for row in await pool.fetch("select id from tasks order by created_at desc, id desc")]

    everything = await pages(door, limit=4)
    some = await pages(door, limit=2, state=["failed", "queued"])
    north = await pages(door, limit=3, workspace_id="north")
    scheduled = await pages(door, schedule_id="s1")
    both = await pages(door, schedule_id="s1", workspace_id="north")
    titled = await pages(door, q="DEAD-letter t")

    assert everything == order
    assert some == [task for task in order if made.index(task) % 7 in (0, 4)]
    assert north == [task for task in order if made.index(task) % 2]
    assert sorted(scheduled) == sorted(made[:4])
    assert sorted(both) == sorted(made[1:4:2])
    assert titled == [task for task in order if made.index(task) % 7 == 6]


async def test_a_foreign_cursor_is_refused_by_name(start: Any, door: Any, refusal: Any) -> None:
    await start(slots=0)

    for cursor in ("x", "2026", "MjAyNi0wMS0wMVQwMDowMDowMHxh"):
        assert (await refusal(door.ask(ListTasks(cursor=cursor)))).field == "cursor"


async def test_unknown_ids_are_not_found(start: Any, door: Any, refusal: Any) -> None:
    await start(slots=0)
    body = ResolveTaskBody(evidence="x")

    for request in (
        GetTask(task_id="none"),
        ReadTranscript(task_id="none"),
        CancelTask(task_id="none"),
        ResolveTask(task_id="none", body=body),
        RetryTask(task_id="none"),
        DeleteTask(task_id="none"),
    ):
        assert (await refusal(door.ask(request))).http_status == 404
