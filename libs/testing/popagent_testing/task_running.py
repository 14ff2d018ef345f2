"""A task-runner whose executor follows the lines of a task's prompt; run as a module it is a process of its own.

Lines: `say WORDS`, `call TOOL`, `act NAME` (an effect, after its intent), `sleep SECONDS`, `fail CAUSE`, `die` (kill -9
of the process), `deaf SECONDS` (does not end when told to), `answer TEXT`; `1: …` counts in the first attempt only.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final, cast, get_args
from uuid import UUID

from popagent_bus import Bus, Handlers
from popagent_db.pool import Pool, open_pool
from popagent_kit.errors import InvalidInputError
from popagent_proto import matrix
from popagent_proto.task_runner.tasks import TaskErrorClass
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_task_runner.tasks import closing as closing_workspaces
from popagent_task_runner.tasks import following
from popagent_task_runner.tasks.creating import Creations
from popagent_task_runner.tasks.deps import Limits, RunDeps, TaskDeps
from popagent_task_runner.tasks.executor import Call, Executor, Finished, Note, StoppedError, TaskFailedError, TaskRun
from popagent_task_runner.tasks.following import Followers
from popagent_task_runner.tasks.handlers import handlers
from popagent_task_runner.tasks.room import Room
from popagent_task_runner.tasks.rows import TaskRows
from popagent_task_runner.tasks.worker import TaskWorker
from popagent_testing.suite_bus import PASSWORDS

LEASE_S: Final = 1.2
BEAT_S: Final = 0.3
EFFECTS: Final = """
create table effects (
    position bigint generated always as identity, task_id text, attempt integer, name text,
    at timestamptz not null default clock_timestamp()
);
"""
EXISTS: Final = "select exists (select 1 from effects where task_id = $1 and name = $2)"


@dataclass
class Known:
    """Which workspaces, agents and models there are."""

    workspaces: tuple[str, ...] = ("home", "north", "south")
    agents: tuple[str, ...] = ("researcher",)
    models: tuple[str, ...] = ("scripted-model",)

    async def __call__(self, workspace_id: str | None, agent_id: str | None, model: str | None) -> str:
        """Return the workspace's id, or the first one's; refuse what is not known."""
        named = (
            ("workspaceId", workspace_id, self.workspaces),
            ("agentId", agent_id, self.agents),
            ("model", model, self.models),
        )
        for field_name, value, known in named:
            if value is not None and value not in known:
                raise InvalidInputError("There is no such thing.", field=field_name)
        return workspace_id or self.workspaces[0]


@dataclass
class Script:
    """Follows the lines of a prompt; a remediation says that it has looked."""

    pool: Pool
    runs: list[TaskRun] = field(default_factory=list)
    running: int = 0
    most: int = 0

    async def __call__(self, run: TaskRun) -> Finished:
        """Carry out the attempt."""
        self.runs.append(run)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._follow(run)
        finally:
            self.running -= 1

    async def _follow(self, run: TaskRun) -> Finished:
        if run.task.remediates is not None and run.task.prompt.startswith("A background task failed"):
            return Finished("I looked into it.")
        answer = "done"
        for step, line in enumerate(run.task.prompt.splitlines(), start=1):
            verb, _, rest = line.removeprefix("1: ").partition(" ")
            if line.startswith("1: ") and run.task.attempt > 1:
                continue
            if verb == "answer":
                answer = rest
            else:
                await self._do(run, step, verb, rest)
        return Finished(answer)

    async def _do(self, run: TaskRun, step: int, verb: str, rest: str) -> None:
        if verb == "say":
            for word in rest.split():
                run.said(Note("text", f"{word} ", "run", "orchestrator", step))
                await asyncio.sleep(0)
        elif verb == "call":
            run.note(Note("tool-call", "", "run", "orchestrator", step, calls=(Call(f"c{step}", rest, {"n": step}),)))
        elif verb == "act":
            await self._act(run, step, rest)
        elif verb == "sleep":
            await _unless_stopped(run, float(rest))
        elif verb == "fail":
            cause = cast("TaskErrorClass", rest)
            assert cause in get_args(TaskErrorClass), rest
            raise TaskFailedError(cause, f"It failed by {cause}.")
        elif verb == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif verb == "deaf":
            await _deaf(float(rest))
        else:
            raise ValueError(f"no such line: {verb}")

    async def _act(self, run: TaskRun, step: int, name: str) -> None:
        run.check()
        await run.intend(step, f"call-{step}", "act", name)
        told_to_look = "before you repeat" in run.prompt
        if told_to_look and await self.pool.fetchval(EXISTS, run.task.id, name):
            return
        run.check()
        await self.pool.execute(
            "insert into effects (task_id, attempt, name) values ($1, $2, $3)", run.task.id, run.task.attempt, name
        )


async def _unless_stopped(run: TaskRun, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await run.stop.asked.wait()
        raise StoppedError
    except TimeoutError:
        return


async def _deaf(seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            assert current is not None
            current.uncancel()


@dataclass
class Runner:
    """A task-runner in this process; `stop` ends it as SIGTERM would."""

    worker: TaskWorker
    executor: Any
    deps: TaskDeps
    pool: Pool
    bus: Bus
    limits: list[Limits]
    closing: AsyncExitStack

    async def stop(self, grace_s: float = 0.0) -> None:
        """End in the order of the host."""
        await self.worker.stop(grace_s)
        await self.closing.aclose()


async def start_runner(
    dsn: str,
    nats_url: str,
    executor: Callable[[Pool], Executor] = Script,
    *,
    boot_id: UUID | None = None,
    slots: int = 4,
    timeout_s: float = 60.0,
    queue_depth: int = 1_000,
    lease_s: float = LEASE_S,
    beat_s: float = BEAT_S,
    pulse_s: float = 0.2,
    answers: bool = True,
    works: bool = True,
    **options: Any,
) -> Runner:
    """Start the service's parts as its host does, with short times; it `answers` requests, it `works` on tasks."""
    closing = AsyncExitStack()
    pool = await open_pool(dsn, application_name="popagent-task-runner", max_size=8)
    closing.push_async_callback(pool.close)
    row = matrix.BY_NAME["task-runner"]
    bus = await Bus.connect(nats_url, service=row.name, user=row.role, password=PASSWORDS[row.name])
    closing.push_async_callback(bus.drain)
    pulse = Pulse(pool, period_s=pulse_s)
    pulse.start()
    closing.push_async_callback(pulse.stop)
    outbox = Outbox(pool, bus.publish)
    outbox.start(pulse)
    closing.push_async_callback(outbox.stop)
    holder = Holder.of_this_process(boot_id)
    limits = [Limits(slots, timeout_s)]

    async def current() -> Limits:
        return limits[-1]

    times: dict[str, Any] = {"acknowledge_s": 0.4, "text_every_s": 0.1, "settings_every_s": 0.2, **options}
    carrying = executor(pool)
    deps = RunDeps(pool, outbox, carrying, current, grew=Followers(bus).wake, **times)
    worker = TaskWorker(deps, bus, holder, rows=TaskRows(lease_s=lease_s, beat_s=beat_s))
    if works:
        await worker.start(pulse)
    served = TaskDeps(pool, outbox, Known(), worker, Room(queue_depth), Creations(pool))
    answering: Handlers[TaskDeps] = Handlers()
    answering.include(handlers)
    answering.include(following.handlers)
    answering.include(closing_workspaces.handlers)
    if answers:
        await bus.serve(answering, served)
        closing.push_async_callback(bus.stop_serving)
    return Runner(worker, carrying, served, pool, bus, limits, closing)


async def serve(dsn: str, nats_url: str, boot_id: str, slots: int, lease_s: float = LEASE_S) -> None:
    """Run tasks until SIGTERM, and answer nothing; the boot `-` is that of a process that belongs to no suite."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    boot = None if boot_id == "-" else UUID(boot_id)
    beat_s = min(BEAT_S * lease_s / LEASE_S, 1.0)
    runner = await start_runner(dsn, nats_url, boot_id=boot, slots=slots, answers=False, lease_s=lease_s, beat_s=beat_s)
    await asked.wait()
    await runner.stop(grace_s=0.5)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *map(float, sys.argv[5:])))
