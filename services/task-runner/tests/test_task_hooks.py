"""What hooks are told of tasks: only what is stored, one thing after another, and nothing holds a task up for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from popagent_bus import Bus, Handlers
from popagent_db.pool import Pool
from popagent_proto.chat.hooks import HookEvent
from popagent_proto.chat.runs import GetRunHooks, RunHook, RunHooks
from popagent_proto.task_runner.tasks import TaskStopped
from popagent_runs.hooks.asking import HookCalls
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.commanding import HookCommands
from popagent_runs.hooks.origins import parse_origins
from popagent_task_runner.agents import observing
from popagent_task_runner.agents.observing import TaskHooks
from popagent_task_runner.agents.process_key import ProcessKey
from popagent_task_runner.agents.store import AUDIT
from popagent_testing.suite_bus import ConnectAs
from tests.hook_door import HookDoor

from .conftest import Door, Start

chat: Handlers[HookDoor] = Handlers()


@chat.answers(GetRunHooks)
async def get_hooks(there: HookDoor, query: GetRunHooks) -> RunHooks:
    return RunHooks(items=[_hook(there.origin, query.event)])


def _hook(origin: str, event: HookEvent) -> RunHook:
    return RunHook(
        id=f"of-{event}",
        name=event,
        event=event,
        matcher="*",
        kind="http",
        url=f"{origin}/",
        argv=[],
        timeout_ms=5_000,
        on_failure="allow",
        sealed_secret=None,
    )


@pytest.fixture
def there() -> Iterator[HookDoor]:
    with HookDoor() as opened:
        yield opened


@pytest.fixture
async def hooks(connect_as: ConnectAs, pool: Pool, there: HookDoor, tmp_path: Path) -> AsyncIterator[TaskHooks]:
    """Who tells hooks, with chat played by the test."""
    bus = await connect_as("chat")
    await bus.serve(chat, there)
    asking: Bus = await connect_as("task-runner")
    key = ProcessKey()
    calls = HookCalls(parse_origins(there.origin), HookCommands(None, tmp_path), key)
    telling = TaskHooks(asking, pool, calls, HookAudit(pool, AUDIT.add), key)
    yield telling
    await telling.close()
    await calls.close()
    await bus.stop_serving()


async def until(there: HookDoor, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(10):
        while len(there.told) < count:
            await asyncio.sleep(0.02)
    return there.told


async def completed(door: Door, task: str) -> dict[str, Any]:
    """Return the event of the completed attempt, once it has come over the bus."""
    async with asyncio.timeout(10):
        while True:
            for _, event in door.told(task):
                if event.get("outcome") == "completed":
                    return event
            await asyncio.sleep(0.02)


async def test_a_lost_runner_has_its_end_told_by_whoever_ended_it_and_only_what_is_stored_is_told(
    start: Start, door: Door, hooks: TaskHooks, there: HookDoor, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = await start(observe=hooks.heard, slots=1)
    await pool.execute(
        """
        insert into tasks (
            id, source, workspace_id, title, prompt, max_attempts, state, attempt, owner, boot_id, lease_until,
            started_attempt, turn_id, trace_id, started_at
        )
        values (
            'lost', 'user', 'home', 'It', 'answer x', 3, 'running', 1, gen_random_uuid(), gen_random_uuid(),
            now() - interval '1 s', 1, 'turn-1', 'trace-1', now()
        )
        """
    )
    runner.worker.wake()
    await door.until("lost", "completed")
    told = await until(there, 3)
    monkeypatch.setattr(observing, "COMMIT_S", 0.2)

    stored = TaskStopped.model_validate(await completed(door, "lost"))
    hooks.heard(stored.model_copy(update={"version": stored.version + 5}))
    hooks.heard(stored.model_copy(update={"turn_id": "after"}))
    await until(there, 4)

    assert [each["event"] for each in told[:3]] == ["TaskStop", "TaskStart", "TaskStop"]
    assert (told[0]["turnId"], told[0]["traceId"], told[0]["taskId"]) == ("turn-1", "trace-1", "lost")
    assert (told[0]["input"]["errorClass"], told[0]["input"]["state"]) == ("runner-lost", "queued")
    assert [each["turnId"] for each in there.told[3:]] == ["after"]


async def test_hooks_that_hang_hold_no_task_up_and_what_is_too_much_is_dropped_and_counted(
    start: Start, door: Door, hooks: TaskHooks, there: HookDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "MOST_WAITING", 1)
    busy = asyncio.Event()
    ask = hooks._ask

    async def held(*told: Any) -> None:
        await busy.wait()
        await ask(*told)

    monkeypatch.setattr(hooks, "_ask", held)
    before = observing.UNTOLD._value.get()
    await start(observe=hooks.heard)

    task = await door.create("answer here")
    done = await door.until(task.id, "completed")
    await door.until_told(task.id, 3)
    busy.set()
    await until(there, 1)

    assert done.output == "here"
    assert observing.UNTOLD._value.get() == before + 1
    assert [each["event"] for each in there.told] == ["TaskStart"]
