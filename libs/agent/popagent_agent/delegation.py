"""Delegation: every specialist is a tool of its supervisor, and what the supervisor reads is its text alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from popagent_agent.activity import Activity
from popagent_agent.delegate_context import (
    CONVERSATION_SHARE,
    bounded_result,
    capped_steps,
    context_slice,
    conversation,
    last_text,
    specialist_context,
)
from popagent_agent.emitter import Emitter
from popagent_agent.loop import AgentRun, TurnResult, run_turn
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
from popagent_agent.toolset import Tool, Toolset
from popagent_kit.errors import DependencyError
from popagent_kit.ids import new_id
from popagent_models.errors import ModelError
from popagent_models.events import Usage
from popagent_telemetry import redact

log = logging.getLogger(__name__)

PREFIX: Final = "agent-"
RESEARCHER: Final = "researcher"
LONGEST_RUN_S: Final = 1_800.0
# How long a specialist that was told to stop may take for it; less than a tool of the supervisor gets.
STOP_GRACE_S: Final = 4.0
# The settings bound a result; this is above all that they allow.
LONGEST_RESULT: Final = 250_000
TOO_LONG: Final = "took too long"


class DelegationFailedError(DependencyError):
    """A specialist gave no result; the message is what its supervisor is told."""

    code = "delegation_failed"


class DelegationInput(BaseModel):
    """What a supervisor gives to a specialist."""

    model_config = ConfigDict(extra="forbid")

    prompt: str = Field(min_length=1, description="The whole task: what to do, where, what to report.")
    instructions: str | None = None
    maxSteps: int | None = Field(default=None, ge=1)  # noqa: N815 (the name that models read)


@dataclass(frozen=True, slots=True)
class Specialists:
    """What the owner of a run provides for its specialists; `timeout_s` bounds one delegation."""

    model_for: Callable[[AgentProfile], ModelPort]
    tools_for: Callable[[AgentProfile], Toolset]
    threads: DelegateThreads
    timeout_s: float = LONGEST_RUN_S


class Delegates:
    """The specialists of one run; `usage` is what all of them have used so far.

    A specialist gets no tool of this kind, so that nobody delegates further.
    """

    def __init__(self, specialists: Specialists, *, intents: IntentPort, stop: StopSignal, lease: LeasePort) -> None:
        self.usage = Usage(0, 0)
        self.specialists = specialists
        self.intents = intents
        self.stop = stop
        self.lease = lease

    def tools(self, run: AgentRun, out: Emitter) -> list[Tool]:
        """Return a tool for each agent that work may be given to; what they do is told to `out`."""
        said = [*run.history, run.message]
        others = [agent for agent in run.context.agents if agent.delegable and agent.id != run.context.agent.id]
        return [self._tool(agent, said, out) for agent in others if not _withheld(agent, run.context)]

    def _tool(self, agent: AgentProfile, said: Sequence[UIMessage], out: Emitter) -> Tool:
        async def delegate(run: RunContext, call_id: str, **given: Any) -> str:
            return await _Delegation(self, run, agent, said, out, call_id, DelegationInput(**given)).result()

        return Tool(
            name=f"{PREFIX}{agent.id}",
            description=agent.description or f"Agent: {agent.name}",
            access="read",
            may_suspend=False,
            timeout_s=self.specialists.timeout_s + 2 * STOP_GRACE_S,
            function=delegate,
            arguments=DelegationInput,
            takes_call_id=True,
            changes=agent.workspace_access == "read-write",
            longest_output=LONGEST_RESULT,
        )


def _withheld(agent: AgentProfile, run: RunContext) -> bool:
    """Tell whether there is nothing that the researcher could look at: a small model would ask it all the same."""
    return agent.id == RESEARCHER and run.workspace is not None and not run.workspace.offers_research


@dataclass(frozen=True, slots=True)
class _Delegation:
    delegates: Delegates
    supervisor: RunContext
    agent: AgentProfile
    said: Sequence[UIMessage]
    out: Emitter
    call_id: str
    given: DelegationInput

    async def result(self) -> str:
        """Carry it out and return the specialist's text.

        Raises:
            DelegationFailedError: There is none, for whatever reason; the log has it.
            LeaseLostError: The run is not ours any more.
        """
        settings = self.supervisor.settings
        try:
            result = await self._carried_out(self._child())
        except LeaseLostError:
            raise
        except ModelError as error:
            log.warning("no model for a specialist", extra={"agent": self.agent.id, "code": error.code})
            raise DelegationFailedError(settings.delegation_failure_text) from error
        except Exception as error:
            log.exception("a delegation broke", extra={"agent": self.agent.id})
            raise DelegationFailedError(settings.delegation_failure_text) from error
        text = bounded_result(last_text(result.parts), settings) if result and state_of(result) == "completed" else ""
        if not text:
            raise DelegationFailedError(settings.delegation_failure_text)
        return text

    def _child(self) -> AgentRun:
        run = specialist_context(self.supervisor, self.agent, redact(self.given.instructions or ""))
        said = context_slice(self.said, run.settings.delegation_context_messages)
        return AgentRun(
            context=run,
            message_id=new_id(),
            history=(),
            message={"id": new_id(), "role": "user", "parts": [{"type": "text", "text": self.task}]},
            max_steps=capped_steps(self.given.maxSteps, run.settings),
            segments=conversation(said, self.supervisor.agent.name, run.model.context // CONVERSATION_SHARE),
        )

    @property
    def task(self) -> str:
        """What the specialist reads: the text that is stored of it."""
        return redact(self.given.prompt)

    async def _carried_out(self, child: AgentRun) -> TurnResult | None:
        """Run it to its end and return how it went, None when it broke or took too long."""
        specialists = self.delegates.specialists
        model, tools = specialists.model_for(self.agent), specialists.tools_for(self.agent)
        activity = Activity(partial(self.out.activity, self.call_id))
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

    async def _run(
        self, child: AgentRun, model: ModelPort, tools: Toolset, activity: Activity, stop: StopSignal
    ) -> TurnResult | None:
        await activity.begin(child.context, self.task, child.max_steps)
        result = None
        try:
            result = await run_turn(
                child,
                model=model,
                tools=tools,
                intents=_OwnIntents(self.call_id, self.delegates.intents),
                emit=activity.take,
                stop=stop,
                lease=self.delegates.lease,
            )
        except LeaseLostError:
            raise
        except Exception:
            log.exception("a specialist broke", extra={"agent": self.agent.id})
        usage = result.usage if result is not None else Usage(0, 0)
        self.delegates.usage = added(self.delegates.usage, usage)
        state = state_of(result)
        if state == "stopped" and stop.reason == TOO_LONG:
            state = "failed"
        await self._keep(child, result, state, usage)
        await activity.end(state, usage, budget_exhausted=result is not None and result.budget_exhausted)
        return result

    async def _end(
        self, running: asyncio.Task[TurnResult | None], activity: Activity, stop: StopSignal, state: DelegationState
    ) -> None:
        """Stop it and wait until it has told its end; what does not stop is told as ended and left."""
        stop.stop(TOO_LONG if state == "failed" else self.delegates.stop.reason or state)
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
            await self.delegates.specialists.threads.keep(thread)
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


def state_of(result: TurnResult | None) -> DelegationState:
    """Return how a specialist's run ended for its supervisor: an answer in our own words is none."""
    if result is None:
        return "failed"
    if result.finish_reason == "stopped":
        return "stopped"
    return "failed" if result.finish_reason == "error" or not result.answered else "completed"


def _retrieved(task: asyncio.Task[TurnResult | None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("a specialist that was given up on failed", extra={"reason": str(task.exception())})
