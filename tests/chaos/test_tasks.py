"""Tasks of the real suite under bad luck: nothing stuck, nothing lost, nothing doubled, and soon."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark, until_sleeping
from popagent_kit.ids import new_id
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_replies import Reply, call
from tests.suite import POSTGRES, Suite
from tests.talk import Talk
from tests.tasks import application_database, give, task_in

pytestmark = pytest.mark.timeout(240)
LEASE_S: Final = 30.0
RECOVERED_S: Final = LEASE_S + 5.0
TOLD_TO_LOOK: Final = "before you repeat"
can_confine = pytest.mark.skipif(confinement_problem() is not None, reason="no sandbox can be made here")


async def recovered(suite: Suite, owners: set[str], started: float) -> float:
    """Return after how many seconds no task is held by one of these owners."""
    async with application_database(suite) as conn:
        while await conn.fetchval(
            "select count(*) from task_runner.tasks where state = 'running' and owner::text = any ($1)", list(owners)
        ):
            assert time.monotonic() - started < RECOVERED_S + 30, "a task is stuck"
            await asyncio.sleep(0.05)
    return time.monotonic() - started


async def owners_of(suite: Suite, *tasks: str) -> set[str]:
    """Return who holds the tasks."""
    async with application_database(suite) as conn:
        rows = await conn.fetch("select owner::text from task_runner.tasks where id = any ($1)", list(tasks))
    return {row[0] for row in rows if row[0] is not None}


async def remediation_of(talk: Talk, task_id: str) -> dict[str, Any]:
    """Return the one task that helps another, once it has ended."""
    task = await talk.json("GET", f"/api/tasks/{task_id}")
    return await task_in(talk, task["remediationId"])


def looked_after(what: str) -> list[Reply]:
    """Return what the model says to a failed task: its remediation has looked, and its next attempt finds it done."""
    return [
        Reply(text="I looked into it.", when="A background task failed"),
        Reply(text=f"{what} was there already.", when=TOLD_TO_LOOK),
    ]


@can_confine
async def test_a_runner_killed_while_an_agent_runs_a_command_repeats_nothing_and_loses_nothing(
    suite: Suite, talk: Talk
) -> None:
    mark, file = new_mark(), f"{new_id()}.txt"
    line = f"echo once >> {file}; sleep {mark}"
    suite.model.script(
        Reply(tool_calls=(call("shell", command=line),), when="Append the line."),
        Reply(text="one two three four", hold=True, after=2, when="Count to four."),
    )
    writes = await give(talk, "Append the line.", agentId="implementer", priority=2)
    counts = await give(talk, "Count to four.", priority=1)
    async with asyncio.timeout(30):
        await until_sleeping(mark, 1)
    await suite.until(lambda: suite.model.held() == 1, "the other task's model answers")
    waits = await give(talk, "Wait for a place.")
    held = await owners_of(suite, writes, counts)

    started = time.monotonic()
    suite.kill("task-runner")
    suite.model.reset()
    suite.model.script(*looked_after("The line"), Reply(text="four", when="Count to four."))
    took_s = await recovered(suite, held, started)
    done = [await task_in(talk, each, "completed", timeout_s=60) for each in (writes, counts, waits)]

    assert took_s < RECOVERED_S
    assert not marked_processes(mark)
    assert (suite.workspaces / "default" / file).read_text() == "once\n"
    assert [task["attemptCount"] for task in done] == [2, 2, 1]
    assert [task["output"] for task in done[:2]] == ["The line was there already.", "four"]
    helped = await remediation_of(talk, writes)
    assert (helped["state"], helped["remediates"], helped["workspaceId"]) == ("completed", writes, "default")
    assert done[1]["remediationId"] is None
    asked = [str(each["body"]["messages"]) for each in suite.model.requests()]
    assert sum("Append the line." in each and TOLD_TO_LOOK in each for each in asked) == 1


@pytest.mark.full
@pytest.mark.parametrize("moment", ["before the first word", "between two calls", "in the last answer"])
async def test_a_runner_killed_at_any_moment_leaves_every_task_to_the_next_one(
    suite: Suite, talk: Talk, moment: str
) -> None:
    file = f"{new_id()}.txt"
    write = Reply(tool_calls=(call("write", path=file, content="once\n"),), when="Write it.")
    before = {
        "before the first word": [Reply(text="slow", hold=True, when="Write it.")],
        "between two calls": [write, Reply(text="slow", hold=True)],
        "in the last answer": [write, Reply(text="one two three", hold=True, after=2)],
    }[moment]
    acted = moment != "before the first word"
    suite.model.script(*before)
    task_id = await give(talk, "Write it.", agentId="implementer")
    await suite.until(lambda: suite.model.held() == 1, "the model is asked")
    held = await owners_of(suite, task_id)

    started = time.monotonic()
    suite.kill("task-runner")
    suite.model.reset()
    suite.model.script(*(looked_after("It") if acted else [write, Reply(text="It is written.")]))
    took_s = await recovered(suite, held, started)
    task = await task_in(talk, task_id, "completed", timeout_s=60)

    assert took_s < RECOVERED_S
    assert (suite.workspaces / "default" / file).read_text() == "once\n"
    assert (task["attemptCount"], task["remediationId"] is not None) == (2, acted)


@pytest.mark.full
async def test_a_task_that_kills_its_runner_each_time_ends_in_dead_letter_and_others_flow(
    suite: Suite, talk: Talk
) -> None:
    suite.model.script(Reply(text="slow", hold=True, when="Kill it.", times=0))
    task_id = await give(talk, "Kill it.", maxAttempts=2)
    for attempt in (1, 2):
        async with asyncio.timeout(90):
            while (await talk.json("GET", f"/api/tasks/{task_id}"))["attemptCount"] < attempt or not suite.model.held():
                await asyncio.sleep(0.05)
        old = suite.kill("task-runner")
        suite.model.drop_connections()
        await suite.until_back("task-runner", old)
    other = await task_in(talk, await give(talk, "Another one."), "completed")
    task = await task_in(talk, task_id, timeout_s=60)

    assert other["attemptCount"] == 1
    assert (task["state"], task["attemptCount"], task["lastErrorClass"]) == ("dead-letter", 2, "runner-lost")
    assert "perhaps because of what it does" in task["explanation"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "how"), [("nats", signal.SIGKILL), (POSTGRES, signal.SIGQUIT)], ids=["nats", "postgres immediate"]
)
async def test_a_server_that_is_gone_for_a_moment_costs_no_task_and_doubles_no_effect(
    suite: Suite, talk: Talk, program: str, how: signal.Signals
) -> None:
    files = [f"{new_id()}.txt" for _ in range(2)]
    for number, file in enumerate(files):
        suite.model.script(
            Reply(tool_calls=(call("write", path=file, content="once\n"),), when=f"Write number {number}."),
            Reply(text="slow but done", hold=True, after=1, when=file),
        )
    tasks = [await give(talk, f"Write number {number}.", agentId="implementer") for number in range(2)]
    await suite.until(lambda: suite.model.held() == 2, "both models answer")

    await suite.restart(program, how)
    suite.model.script(*looked_after("It") * 2)
    suite.model.release()
    done = [await task_in(talk, each, timeout_s=90) for each in tasks]
    later = await task_in(talk, await give(talk, "After all this."), "completed", timeout_s=60)

    assert [task["state"] for task in done] == ["completed"] * 2
    assert [(suite.workspaces / "default" / file).read_text() for file in files] == ["once\n"] * 2
    assert later["attemptCount"] == 1


@pytest.fixture
async def second_scheduler(suite: Suite) -> AsyncIterator[int]:
    """One more scheduler of the same suite; its process id."""
    instance = suite.another("scheduler")
    await suite.until(instance.ready, "the second scheduler is ready")
    yield instance.pid
    os.kill(instance.pid, signal.SIGCONT)
    await asyncio.to_thread(instance.end)


@pytest.mark.full
async def test_of_two_schedulers_one_of_which_froze_over_a_due_time_there_is_one_task(
    suite: Suite, talk: Talk, second_scheduler: int
) -> None:
    schedules = [
        await talk.json("POST", "/api/schedules", {"name": f"S{n}", "prompt": f"Report {n}.", "cron": "@yearly"})
        for n in range(6)
    ]
    ids = [each["id"] for each in schedules]
    due = "update scheduler.schedules set next_run_at = clock_timestamp() where id = any ($1)"

    async with application_database(suite) as conn:
        await conn.execute(due, ids[:3])
        os.kill(second_scheduler, signal.SIGSTOP)
        await conn.execute(due, ids[3:])
        # Longer than whoever took a run keeps it from the others.
        async with asyncio.timeout(60):
            while await conn.fetchval(
                "select count(*) from scheduler.schedule_runs where schedule_id = any ($1) and outcome = 'started'", ids
            ) < len(ids):
                await asyncio.sleep(0.1)
        os.kill(second_scheduler, signal.SIGCONT)
        later = await talk.json("POST", f"/api/schedules/{ids[0]}/run")
        await task_in(talk, later["taskId"], "completed")
        made = await conn.fetch(
            "select schedule_id, count(*) from task_runner.tasks where schedule_id = any ($1) group by 1", ids
        )

    assert {row[0]: row[1] for row in made} == {each: 1 + (each == ids[0]) for each in ids}
