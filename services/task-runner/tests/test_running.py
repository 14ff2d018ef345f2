"""An attempt from its claim to its stored end, and what is told of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_proto.task_runner.tasks import CancelTask, RetryTask
from popagent_task_runner.tasks.deps import Limits


async def test_a_task_runs_to_its_end_and_both_ends_of_the_attempt_are_told_with_one_turn_and_trace(
    start: Any, door: Any
) -> None:
    await start()

    created = await door.create("say The heron stands.\nanswer It stood.")
    task = await door.until(created.id, "completed")
    (made, _), (began, start_event), (ended, stop_event) = await door.until_told(created.id, 3)

    assert (created.state, created.version, created.attempt_count) == ("queued", 0, 0)
    assert (task.output, task.excerpt, task.attempt_count, task.last_error_class) == ("It stood.", "It stood.", 1, None)
    assert (made, began, ended) == ("changed", "started", "stopped")
    assert stop_event["outcome"] == "completed"
    assert stop_event["excerpt"] == "It stood."
    assert stop_event["task"]["state"] == "completed"
    assert start_event["task"]["state"] == "running"
    for name in ("turnId", "traceId"):
        assert start_event[name] == stop_event[name] == stop_event["task"][name]
        assert start_event[name]


async def test_a_blank_answer_is_a_failure(start: Any, door: Any) -> None:
    await start()

    created = await door.create("answer  ", max_attempts=1)
    task = await door.until(created.id, "dead-letter")

    assert (task.last_error_class, task.last_error) == ("unknown", "It ended without an answer.")


@pytest.mark.parametrize("error", ["provider", "rate-limit", "database", "infrastructure"])
async def test_a_passing_cause_before_any_effect_is_waited_out_and_the_ceiling_rises(
    start: Any, door: Any, pool: Pool, error: str
) -> None:
    await start()

    created = await door.create(f"1: fail {error}\nanswer ok", max_attempts=1)
    waiting = await door.until(created.id, "queued")
    async with asyncio.timeout(10):
        while waiting.attempt_count == 0 or waiting.state != "queued":
            waiting = await door.get(created.id)
    await pool.execute("update tasks set run_at = now() where id = $1", created.id)
    done = await door.until(created.id, "completed")
    told = await door.until_told(created.id, 5)

    assert (waiting.last_error_class, waiting.max_attempts) == (error, 2)
    assert waiting.next_attempt_at is not None
    assert (done.attempt_count, done.max_attempts, done.last_error) == (2, 2, None)
    # TK-8: the retry in between is a failed stop before the next start.
    assert [verb for verb, _ in told] == ["changed", "started", "stopped", "started", "stopped"]
    assert (told[2][1]["outcome"], told[2][1]["task"]["state"]) == ("failed", "queued")
    assert told[1][1]["turnId"] != told[3][1]["turnId"]
    assert told[1][1]["traceId"] != told[3][1]["traceId"]


async def test_a_user_s_task_that_acted_fails_and_its_remediation_sends_it_back_with_what_it_had_begun(
    start: Any, door: Any, pool: Pool
) -> None:
    runner = await start()

    created = await door.create("act letter\n1: fail provider\nanswer sent")
    remediation = await door.until(await door.remediation_of(created.id), "completed")
    task = await door.until(created.id, "completed")
    told = await door.until_told(created.id, 6)

    assert (task.attempt_count, task.max_attempts, task.output) == (2, 3, "sent")
    assert [verb for verb, _ in told] == ["changed", "started", "stopped", "changed", "started", "stopped"]
    assert (told[2][1]["outcome"], told[2][1]["errorClass"]) == ("failed", "provider")
    assert task.remediation_id == remediation.id
    assert (remediation.remediates, remediation.workspace_id, remediation.model) == (created.id, "home", None)
    assert remediation.title == "Find out why “act letter” failed"
    for part in ("act letter", "It failed by provider.", "no ./popagent in it", "attempt 1"):
        assert part in remediation.prompt
    second = runner.executor.runs[-1]
    assert "attempt 1, step 1: act letter" in second.prompt
    assert "I looked into it." in second.prompt
    # It looked, and did not repeat it.
    assert await pool.fetchval("select count(*) from effects") == 1


async def test_what_a_person_tries_again_is_told_what_it_had_begun_and_repeats_nothing(
    start: Any, door: Any, pool: Pool
) -> None:
    runner = await start()
    created = await door.create("act letter\n1: fail validation\nanswer sent", max_attempts=1)
    await door.until(created.id, "dead-letter")

    await door.ask(RetryTask(task_id=created.id))
    task = await door.until(created.id, "completed")

    assert (task.attempt_count, task.max_attempts, task.output) == (2, 2, "sent")
    assert (task.last_error_class, task.explanation, task.remediation_id) == (None, None, None)
    assert "attempt 1, step 1: act letter" in runner.executor.runs[-1].prompt
    assert await pool.fetchval("select count(*) from effects") == 1
    verbs = [verb for verb, _ in await door.until_told(created.id, 6)]
    assert verbs == ["changed", "started", "stopped", "changed", "started", "stopped"]


async def test_a_parent_that_fails_again_is_retried_directly_and_dead_lettered_at_its_ceiling(
    start: Any, door: Any, pool: Pool
) -> None:
    await start()

    created = await door.create("fail validation", max_attempts=3)
    await door.remediation_of(created.id)
    async with asyncio.timeout(15):
        while (await door.get(created.id)).state != "dead-letter":
            await pool.execute("update tasks set run_at = now() where id = $1 and state = 'queued'", created.id)
            await asyncio.sleep(0.02)
    task = await door.get(created.id)
    stops = [event for verb, event in await door.until_told(created.id, 8) if verb == "stopped"]

    assert (task.attempt_count, task.max_attempts, task.last_error_class) == (3, 3, "validation")
    assert task.dead_lettered_at is not None
    assert "Attempt 3 of 3 was the last" in (task.explanation or "")
    assert await pool.fetchval("select count(*) from tasks where remediates = $1", created.id) == 1
    assert [stop["outcome"] for stop in stops] == ["failed", "failed", "dead-letter"]


async def test_a_remediation_files_none_and_goes_on_until_it_completes(start: Any, door: Any, pool: Pool) -> None:
    await start()
    created = await door.create("fail validation")
    remediation = await door.remediation_of(created.id)
    await door.until(remediation, "completed")

    await pool.execute(
        "update tasks set state = 'queued', attempt = 7, max_attempts = 3, prompt = 'fail permission',"
        " run_at = now() where id = $1",
        remediation,
    )
    async with asyncio.timeout(10):
        while (waiting := await door.get(remediation)).attempt_count < 8 or waiting.state != "queued":
            await asyncio.sleep(0.02)

    assert (waiting.last_error_class, waiting.max_attempts) == ("permission", 4)
    assert await pool.fetchval("select count(*) from tasks where remediates = $1", remediation) == 0


@pytest.mark.parametrize("heeds", ["sleep 30", "deaf 0.3"])
async def test_a_task_that_takes_too_long_is_ended_and_its_timeout_is_stored_after_it_has(
    start: Any, door: Any, heeds: str
) -> None:
    await start(timeout_s=0.2)

    created = await door.create(f"{heeds}\nfail unknown", max_attempts=1)
    task = await door.until(created.id, "dead-letter")

    assert task.last_error_class == "timeout"
    assert "0.2 s" in (task.last_error or "")


async def test_a_contained_task_is_tried_again_after_its_timeout_and_dead_lettered_at_the_end(
    start: Any, door: Any, pool: Pool
) -> None:
    await start(timeout_s=0.1)

    created = await door.create("act clone\nsleep 30", source="self-update", max_attempts=2)
    async with asyncio.timeout(10):
        while (await door.get(created.id)).attempt_count < 1:
            await asyncio.sleep(0.02)
        while (await door.get(created.id)).state != "dead-letter":
            await pool.execute("update tasks set run_at = now() where id = $1 and state = 'queued'", created.id)
            await asyncio.sleep(0.02)
    task = await door.get(created.id)

    assert (task.source, task.attempt_count, task.last_error_class) == ("self-update", 2, "timeout")
    assert "longer than a task may" in (task.explanation or "")


async def test_an_executor_that_does_not_heed_keeps_its_slot_and_is_shown_until_it_ends(start: Any, door: Any) -> None:
    runner = await start(slots=1)
    created = await door.create("deaf 2.5")
    await door.until(created.id, "running")

    asked = await door.ask(CancelTask(task_id=created.id))
    async with asyncio.timeout(2):
        while (shown := await door.get(created.id)).interrupted_at is None:
            await asyncio.sleep(0.02)
    waiting = await door.create()
    again = await door.ask(CancelTask(task_id=created.id))
    kept = (runner.worker.running, (await door.get(waiting.id)).state)
    task = await door.until(created.id, "cancelled")
    await door.until(waiting.id, "completed")
    told = await door.until_told(created.id, 5)

    assert (asked.state, shown.state, again.state) == ("cancelling", "cancelling", "cancelling")
    assert kept == (1, "queued")
    assert (task.interrupted_at, task.last_error_class, task.attempt_count) == (None, "cancelled", 1)
    assert [verb for verb, _ in told] == ["changed", "started", "changed", "interrupted", "stopped"]
    assert told[4][1]["outcome"] == "cancelled"


async def test_a_task_that_is_interrupted_is_not_taken_by_another_runner_while_it_goes_on(
    start: Any, door: Any
) -> None:
    one = await start(timeout_s=0.1)
    created = await door.create("deaf 3\nfail unknown", max_attempts=1)
    await door.until(created.id, "running")
    two = await start()

    task = await door.until(created.id, "dead-letter")

    assert (task.attempt_count, task.last_error_class) == (1, "timeout")
    assert len(one.executor.runs) == 1
    assert two.executor.runs == []


async def test_slots_follow_the_settings_while_tasks_run(start: Any, door: Any) -> None:
    runner = await start(slots=1)
    script = runner.executor
    tasks = [await door.create("sleep 0.3") for _ in range(8)]
    async with asyncio.timeout(5):
        while script.running < 1:
            await asyncio.sleep(0.01)

    first = script.most
    runner.limits.append(Limits(4, 60.0))
    for task in tasks:
        await door.until(task.id, "completed")

    assert first == 1
    assert 2 <= script.most <= 4


async def test_runners_are_woken_for_what_is_created_and_cancelled_elsewhere(start: Any, door: Any) -> None:
    await start(works=False)
    await start(answers=False, lease_s=90.0, beat_s=30.0, pulse_s=30.0)
    # Whether its first look at the table, or the wake-up, finds this one: after it there is the wake-up alone.
    await door.until((await door.create()).id, "completed", timeout_s=5)

    created = await door.create("sleep 60")
    await door.until(created.id, "running", timeout_s=5)
    await door.ask(CancelTask(task_id=created.id))

    assert (await door.until(created.id, "cancelled", timeout_s=5)).attempt_count == 1
