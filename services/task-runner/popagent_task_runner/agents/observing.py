"""Hooks are told of attempts after their start or their end was stored, behind the back of whoever carries them out."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_proto.chat.agents import ORCHESTRATOR
from popagent_proto.chat.hooks import HookEvent
from popagent_proto.chat.runs import GetRunHooks
from popagent_proto.task_runner.tasks import TaskStarted, TaskStopped
from popagent_runs.hooks.asking import HookCalls
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.rows import StoredHook
from popagent_runs.hooks.running import RunHooks
from popagent_task_runner.agents import store
from popagent_task_runner.agents.process_key import ProcessKey
from popagent_task_runner.agents.snapshots import stored_hook
from popagent_telemetry import metrics

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
MOST_WAITING: Final = 1_000
# What is told when the process stops gets so long to be told.
STOP_S: Final = 2.0
# An end that the sweep of another's attempt decided is stored within so long, or not at all.
COMMIT_S: Final = 5.0
LOOK_S: Final = 0.05

UNTOLD: Final = metrics.counter(
    "popagent_task_hooks_dropped_total", "Starts and ends of attempts that hooks were not told of"
)


class TaskHooks:
    """What this process is telling. Nothing here can change what became of a task."""

    def __init__(self, bus: Bus, pool: Pool, calls: HookCalls, audit: HookAudit, key: ProcessKey) -> None:
        self._bus = bus
        self._pool = pool
        self._calls = calls
        self._audit = audit
        self._key = key
        self._room = asyncio.Semaphore(AT_ONCE)
        self._telling: set[asyncio.Task[None]] = set()
        self._last: dict[str, asyncio.Task[None]] = {}

    def heard(self, event: TaskStarted | TaskStopped) -> None:
        """Begin to tell; of one task one thing after another."""
        if len(self._telling) >= MOST_WAITING:
            UNTOLD.inc()
            log.error("hooks are not told of a task", extra={"task": event.task.id})
            return
        before = self._last.get(event.task.id)
        telling = asyncio.create_task(self._tell(event, before), name=f"hooks of task {event.task.id}")
        self._telling.add(telling)
        self._last[event.task.id] = telling
        telling.add_done_callback(lambda done: self._told(event, done))

    def _told(self, event: TaskStarted | TaskStopped, done: asyncio.Task[None]) -> None:
        self._telling.discard(done)
        if self._last.get(event.task.id) is done:
            del self._last[event.task.id]
        if not done.cancelled() and (error := done.exception()) is not None:
            UNTOLD.inc()
            log.error("hooks were not told of a task", exc_info=error, extra={"task": event.task.id})

    async def _tell(self, event: TaskStarted | TaskStopped, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        async with self._room:
            name: HookEvent = "TaskStart" if isinstance(event, TaskStarted) else "TaskStop"
            try:
                hooks = await self._hooks(name)
                if hooks and await self._is_stored(event):
                    await self._ask(event, hooks)
            except AppError as error:
                UNTOLD.inc()
                log.warning(
                    "hooks are not told of a task",
                    extra={"task": event.task.id, "event": name, "reason": error.message},
                )

    async def _hooks(self, event: HookEvent) -> list[StoredHook]:
        found = await self._bus.ask(GetRunHooks(event=event, seal_to=self._key.public))
        return [stored_hook(hook) for hook in found.items]

    async def _is_stored(self, event: TaskStarted | TaskStopped) -> bool:
        """Tell whether the change was committed; one that is rolled back is decided anew and heard of again."""
        give_up_at = asyncio.get_running_loop().time() + COMMIT_S
        while True:
            async with self._pool.acquire() as conn:
                version = await store.VERSION.first(conn, event.task.id)
            if version is None or version >= event.version:
                return True
            if asyncio.get_running_loop().time() > give_up_at:
                return False
            await asyncio.sleep(LOOK_S)

    async def _ask(self, event: TaskStarted | TaskStopped, hooks: list[StoredHook]) -> None:
        asked = RunHooks(
            self._calls,
            self._audit,
            hooks,
            session_id=event.task.session_id,
            agent_id=event.task.agent_id or ORCHESTRATOR,
            turn_id=event.turn_id,
            trace_id=event.trace_id,
            task_id=event.task.id,
        )
        if isinstance(event, TaskStarted):
            await asked.task_begins(_of_task(event))
        else:
            await asked.task_ends(_of_task(event) | _of_end(event))

    async def close(self) -> None:
        """Wait a moment for what is being told; the rest is given up and said in the log."""
        if not self._telling:
            return
        _, late = await asyncio.wait(self._telling, timeout=STOP_S)
        for task in late:
            log.warning("a hook was not told to its end of a task", extra={"what": task.get_name()})
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def _of_task(event: TaskStarted | TaskStopped) -> dict[str, Any]:
    task = event.task
    return {
        "title": task.title,
        "source": task.source,
        "workspaceId": task.workspace_id,
        "scheduleId": task.schedule_id,
        "remediates": task.remediates,
        "attempt": event.attempt,
        "maxAttempts": task.max_attempts,
    }


def _of_end(event: TaskStopped) -> dict[str, Any]:
    return {
        "outcome": event.outcome,
        "state": event.task.state,
        "errorClass": event.error_class,
        "error": event.error,
        "output": event.excerpt,
    }
