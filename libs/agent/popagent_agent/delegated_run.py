"""The run of one specialist for another agent: carried out to its end, told to those who watch, kept, counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from popagent_agent.activity import Activity
from popagent_agent.delegate_context import (
    CONVERSATION_SHARE,
    capped_steps,
    context_slice,
    conversation,
    specialist_context,
)
from popagent_agent.emitter import Emitter
from popagent_agent.loop import AgentRun, TurnResult, run_turn
from popagent_agent.mailbox import Mailbox, MailSession
from popagent_agent.messages import UIMessage
from popagent_agent.ports import (
    DelegateThread,
    DelegateThreads,
    DelegationState,
    IntentPort,
    LeaseLostError,
    LeasePort,
    ModelPort,
    ToolCall,
)
from popagent_agent.run_context import AgentProfile, RunContext
from popagent_agent.stopping import StopSignal
from popagent_agent.tokens import added
from popagent_agent.toolset import Toolset
from popagent_kit.ids import new_id
from popagent_models.events import Usage
from popagent_telemetry import redact

log = logging.getLogger(__name__)

LONGEST_RUN_S: Final = 1_800.0
# How long a specialist that was told to stop may take for it; less than a tool of the supervisor gets.
STOP_GRACE_S: Final = 4.0
TOO_LONG: Final = "took too long"


@dataclass(frozen=True, slots=True)
class Specialists:
    """What the owner of a run provides for its specialists; `timeout_s` bounds the run of one."""

    model_for: Callable[[AgentProfile], ModelPort]
    tools_for: Callable[[AgentProfile], Toolset]
    threads: DelegateThreads
    timeout_s: float = LONGEST_RUN_S


@dataclass(slots=True)
class Shared:
    """What the specialists of one run have from it; `usage` is what all of them have used so far.

    `said` is the conversation that they were not part of, `out` hears what they do, `mail` carries their letters.
    """

    supervisor: RunContext
    said: Sequence[UIMessage]
    out: Emitter
    specialists: Specialists
    intents: IntentPort
    stop: StopSignal
    lease: LeasePort
    mail: MailSession | None = None
    usage: Usage = field(default_factory=lambda: Usage(0, 0))


@dataclass(frozen=True, slots=True)
class SpecialistRun:
    """What one of them is given. `call_id` names it in the whole run, `task` is what it reads.

    `shown` is what a person is told of the task, and `asked_by` who woke it by a letter; a delegated one has neither.
    """

    shared: Shared
    agent: AgentProfile
    call_id: str
    task: str
    mail: Mailbox | None
    instructions: str = ""
    max_steps: int | None = None
    shown: str | None = None
    asked_by: str | None = None

    async def carried_out(self) -> TurnResult | None:
        """Run it to its end and return how it went, None when it broke or took too long.

        Raises:
            ModelError: There is no model for it.
            LeaseLostError: The run is not ours any more.
        """
        child, specialists = self._child(), self.shared.specialists
        model, tools = specialists.model_for(self.agent), specialists.tools_for(self.agent)
        activity = Activity(partial(self.shared.out.activity, self.call_id))
        stop = StopSignal()
        running = asyncio.create_task(
            self._run(child, model, tools, activity, stop), name=f"delegation to {self.agent.id}"
        )
        try:
            await asyncio.wait({running}, timeout=specialists.timeout_s)
            if running.done():
                return running.result()
            log.warning("a specialist took too long", extra={"agent": self.agent.id})
            await self._end(running, activity, stop, "failed")
            return None
        except asyncio.CancelledError:
            await self._end(running, activity, stop, "stopped")
            raise
        finally:
            if not running.done():
                running.cancel()
                running.add_done_callback(_retrieved)

    def state_of(self, result: TurnResult | None) -> DelegationState:
        """Return how it ended for who asked: an answer in our own words is none, but who was woken needs none."""
        if result is None:
            return "failed"
        if result.finish_reason == "stopped":
            return "stopped"
        says_nothing = not result.answered and self.asked_by is None
        return "failed" if result.finish_reason == "error" or says_nothing else "completed"

    def _child(self) -> AgentRun:
        supervisor = self.shared.supervisor
        run = specialist_context(supervisor, self.agent, redact(self.instructions), self.mail)
        said = context_slice(self.shared.said, run.settings.delegation_context_messages)
        return AgentRun(
            context=run,
            message_id=new_id(),
            history=(),
            message={"id": new_id(), "role": "user", "parts": [{"type": "text", "text": redact(self.task)}]},
            max_steps=capped_steps(self.max_steps, run.settings),
            segments=conversation(said, supervisor.agent.name, run.model.context // CONVERSATION_SHARE),
        )

    async def _run(
        self, child: AgentRun, model: ModelPort, tools: Toolset, activity: Activity, stop: StopSignal
    ) -> TurnResult | None:
        shown = redact(self.task if self.shown is None else self.shown)
        await activity.begin(child.context, shown, child.max_steps, self.asked_by)
        result = None
        try:
            result = await run_turn(
                child,
                model=model,
                tools=tools,
                intents=_OwnIntents(self.call_id, self.shared.intents),
                emit=activity.take,
                stop=stop,
                lease=self.shared.lease,
            )
        except LeaseLostError:
            raise
        except Exception:
            log.exception("a specialist broke", extra={"agent": self.agent.id})
        usage = result.usage if result is not None else Usage(0, 0)
        self.shared.usage = added(self.shared.usage, usage)
        state = self.state_of(result)
        if state == "stopped" and stop.reason == TOO_LONG:
            state = "failed"
        await self._keep(child, result, state, usage)
        await activity.end(state, usage, budget_exhausted=result is not None and result.budget_exhausted)
        return result

    async def _end(
        self, running: asyncio.Task[TurnResult | None], activity: Activity, stop: StopSignal, state: DelegationState
    ) -> None:
        """Stop it and wait until it has told its end; what does not stop is told as ended and left."""
        stop.stop(TOO_LONG if state == "failed" else self.shared.stop.reason or state)
        await asyncio.wait({running}, timeout=STOP_GRACE_S)
        if running.done():
            _retrieved(running)
        else:
            log.warning("a specialist does not stop", extra={"agent": self.agent.id})
            running.cancel()
            await activity.end(state, Usage(0, 0), budget_exhausted=False)

    async def _keep(self, child: AgentRun, result: TurnResult | None, state: DelegationState, usage: Usage) -> None:
        run = child.context
        ids = {"threadId": run.thread_id, "resourceId": run.resource_id}
        messages = [{**child.message, "metadata": ids}]
        if result is not None:
            messages.append({"id": child.message_id, "role": "assistant", "parts": result.parts, "metadata": ids})
        thread = DelegateThread(
            str(run.thread_id), str(run.resource_id), self.agent.id, self.call_id, state, messages, usage
        )
        try:
            await self.shared.specialists.threads.keep(thread)
        except LeaseLostError:
            raise
        except Exception:
            log.exception("the thread of a delegate was lost", extra={"agent": self.agent.id})


@dataclass(frozen=True, slots=True)
class _OwnIntents:
    """Intents of a delegate, in the run of its supervisor, which counts calls of its own."""

    call_id: str
    intents: IntentPort

    async def record(self, step: int, call: ToolCall) -> None:
        await self.intents.record(step, replace(call, call_id=f"{self.call_id}/{call.call_id}"))


def _retrieved(task: asyncio.Task[TurnResult | None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("a specialist that was given up on failed", extra={"reason": str(task.exception())})
