"""An agent carries out a task: the loop of a chat's turn, with the task's lease, intents and transcript."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from popagent_agent.delegated_run import Specialists
from popagent_agent.delegation import Delegates
from popagent_agent.loop import AgentRun, TurnResult, run_turn
from popagent_agent.messages import steps_of, visible_text
from popagent_agent.ports import DelegateThread, ToolCall
from popagent_agent.stopping import StoppedError as RunStoppedError
from popagent_agent.stopping import StopSignal
from popagent_kit import json
from popagent_kit.ids import new_id
from popagent_proto.task_runner.tasks import TaskErrorClass
from popagent_runs.begun import BegunRun, RunIds, RunParts, begin
from popagent_runs.leases import as_held, as_run
from popagent_task_runner.agents.recorder import Recorder
from popagent_task_runner.agents.snapshots import Snapshots
from popagent_task_runner.tasks.causes import OF_MODELS
from popagent_task_runner.tasks.executor import Finished, StoppedError, TaskFailedError, TaskRun
from popagent_telemetry import redact_value
from popagent_tools.catalogue import tools_of

NO_WORDS: Final = "It ended without words of its own."


class AgentExecutor:
    """Carries out any number of tasks at once."""

    def __init__(self, parts: RunParts, snapshots: Snapshots) -> None:
        self._parts = parts
        self._snapshots = snapshots

    async def __call__(self, run: TaskRun) -> Finished:
        """Return what the agent says last.

        Raises:
            StoppedError: It was told to end.
            TaskFailedError: Its model failed; the cause says how.
            LeaseLostError: Another runner has the task.
            AppError: It could not begin, or a hook refused it.
        """
        stop = StopSignal()
        watch = asyncio.create_task(_stop_when_asked(run, stop), name=f"task {run.task.id} stop")
        try:
            with as_held():
                return await self._finished(run, stop)
        except RunStoppedError:
            raise StoppedError from None
        finally:
            watch.cancel()

    async def _finished(self, run: TaskRun, stop: StopSignal) -> Finished:
        task = run.task
        with stop.interrupts():
            stored = await self._snapshots.take(task.workspace_id, task.agent_id)
            ids = RunIds(turn_id=run.turn_id, session_id=task.session_id, trace_id=run.trace_id, task_id=task.id)
            begun = await begin(self._parts, stored, ids, task.model)
        with begun:
            with stop.interrupts():
                await begun.hooks.before_prompt(run.prompt)
            return _finished_with(await self._loop(run, begun, stop))

    async def _loop(self, run: TaskRun, begun: BegunRun, stop: StopSignal) -> TurnResult:
        context = begun.context
        recorder = Recorder(run, context.agent.id)
        ports = _Ports(run, recorder)
        specialists = Specialists(model_for=lambda _: begun.model, tools_for=tools_of, threads=ports)
        is_supervisor = bool(context.agents)
        ceilings = context.settings
        return await run_turn(
            AgentRun(
                context=context,
                message_id=run.turn_id,
                history=(),
                message=_message(run.prompt),
                max_steps=ceilings.supervisor_max_steps if is_supervisor else ceilings.specialist_max_steps,
            ),
            model=begun.model,
            tools=tools_of(context.agent),
            intents=ports,
            emit=recorder.emit,
            stop=stop,
            lease=ports,
            delegates=Delegates(specialists, intents=ports, stop=stop, lease=ports) if is_supervisor else None,
        )


class _Ports:
    """What the loop asks of a task: its lease, its intents, and its transcript for what specialists did."""

    def __init__(self, run: TaskRun, recorder: Recorder) -> None:
        self._run = run
        self._recorder = recorder

    def check(self) -> None:
        """Raise the loop's LeaseLostError from the local deadline on."""
        with as_run():
            self._run.check()

    async def record(self, step: int, call: ToolCall) -> None:
        """Store the intent of a call that may have an effect."""
        arguments = json.dumps(redact_value(call.arguments)).decode()
        with as_run():
            await self._run.intend(step, call.call_id, call.name, arguments)

    async def keep(self, thread: DelegateThread) -> None:
        """Put it into the transcript, whole."""
        self._recorder.heard_out(thread)


def _message(prompt: str) -> dict[str, Any]:
    return {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": prompt}]}


def _finished_with(result: TurnResult) -> Finished:
    if result.finish_reason == "stopped":
        raise StoppedError
    if result.finish_reason == "error":
        raise TaskFailedError(_cause(result.error_class), visible_text(result.parts[-1:]) or NO_WORDS)
    said = [text for step in steps_of(result.parts) if (text := visible_text(step))]
    return Finished(said[-1] if said else "")


def _cause(error_class: str | None) -> TaskErrorClass:
    return next((cause for known, cause in OF_MODELS.items() if known == error_class), "unknown")


async def _stop_when_asked(run: TaskRun, stop: StopSignal) -> None:
    await run.stop.asked.wait()
    stop.stop(run.stop.reason or "stopped")
