"""Delegation: every specialist is a tool of its supervisor, and what the supervisor reads is its text alone."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from popagent_agent.communication import task_of
from popagent_agent.delegate_context import bounded_result, last_text
from popagent_agent.delegated_run import STOP_GRACE_S, Shared, SpecialistRun, Specialists
from popagent_agent.emitter import Emitter
from popagent_agent.letters import Letter
from popagent_agent.loop import AgentRun
from popagent_agent.mailbox import Mailbox, MailSession
from popagent_agent.normalise import says_something
from popagent_agent.ports import IntentPort, LeaseLostError, LeasePort, ToolCall
from popagent_agent.run_context import AgentProfile, RunContext
from popagent_agent.stopping import StopSignal
from popagent_agent.toolset import Tool
from popagent_kit.errors import DependencyError
from popagent_models.errors import ModelError
from popagent_models.events import Usage

log = logging.getLogger(__name__)

PREFIX: Final = "agent-"
RESEARCHER: Final = "researcher"
# The settings bound a result; this is above all that they allow.
LONGEST_RESULT: Final = 250_000


class DelegationFailedError(DependencyError):
    """A specialist gave no result; the message is what its supervisor is told."""

    code = "delegation_failed"


def _task(text: str) -> str:
    if not says_something(text):
        raise ValueError("must say what to do")
    return text


class DelegationInput(BaseModel):
    """What a supervisor gives to a specialist."""

    model_config = ConfigDict(extra="forbid")

    prompt: Annotated[str, AfterValidator(_task)] = Field(
        min_length=1, description="The whole task: what to do, where, what to report."
    )
    instructions: str | None = None
    maxSteps: int | None = Field(default=None, ge=1)  # noqa: N815 (the name that models read)


class Delegates:
    """The specialists of one run, and the letters among them and the agent that they work for.

    A specialist gets no tool of this kind, so that nobody delegates further; it may write to the others.
    """

    def __init__(self, specialists: Specialists, *, intents: IntentPort, stop: StopSignal, lease: LeasePort) -> None:
        self.specialists = specialists
        self.intents = intents
        self.stop = stop
        self.lease = lease
        self._shared: Shared | None = None
        self._agents: list[AgentProfile] = []

    def joined(self, run: AgentRun, out: Emitter) -> AgentRun:
        """Return the run with a mailbox for its agent; what specialists do from now on is told to `out`."""
        own = run.context.agent
        others = [agent for agent in run.context.agents if agent.delegable and agent.id != own.id]
        self._agents = [agent for agent in others if not _withheld(agent, run.context)]
        self._shared = shared = Shared(
            run.context, [*run.history, run.message], out, self.specialists, self.intents, self.stop, self.lease
        )
        if not self._agents:
            return run
        shared.mail = MailSession({agent.id: agent.description for agent in (own, *self._agents)}, self._woken)
        shared.supervisor = replace(run.context, mail=shared.mail.enter(own.id))
        return replace(run, context=shared.supervisor)

    def tools(self) -> list[Tool]:
        """Return a tool for each agent that work may be given to."""
        return [self._tool(agent) for agent in self._agents]

    @property
    def usage(self) -> Usage:
        """What all of them have used so far."""
        return self._joined.usage

    async def settle(self) -> None:
        """Return when nobody works any more who was woken by a letter."""
        shared = self._joined
        if shared.mail is not None and shared.supervisor.mail is not None:
            with shared.supervisor.mail.held():
                await shared.mail.settle()

    async def close(self) -> None:
        """End whoever still works, and all letters."""
        if self._shared is not None and self._shared.mail is not None:
            await self._shared.mail.close()

    @property
    def _joined(self) -> Shared:
        if self._shared is None:
            raise RuntimeError("these delegates have no run yet")
        return self._shared

    def _tool(self, agent: AgentProfile) -> Tool:
        async def delegate(run: RunContext, call_id: str, **given: Any) -> str:
            return await self._result(run, agent, call_id, DelegationInput(**given))

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

    async def _result(self, supervisor: RunContext, agent: AgentProfile, call_id: str, given: DelegationInput) -> str:
        """Carry the work out and return the specialist's text; raises as `_text_of`, and where there is none."""
        shared = self._joined
        with ExitStack() as running:
            mail = None
            if shared.mail is not None:
                mail = shared.mail.enter(agent.id, call_id)
                running.callback(mail.leave)
            if supervisor.mail is not None:
                running.enter_context(supervisor.mail.held())
            run = SpecialistRun(
                shared,
                agent,
                call_id,
                given.prompt,
                mail,
                instructions=given.instructions or "",
                max_steps=given.maxSteps,
            )
            text = await self._text_of(run)
        if not text:
            raise DelegationFailedError(shared.supervisor.settings.delegation_failure_text)
        return text

    async def _text_of(self, run: SpecialistRun) -> str:
        """Return what it says last, bounded, and nothing where a blank end is an end.

        Raises:
            DelegationFailedError: It did not come to its end; the log has why.
            LeaseLostError: The run is not ours any more.
        """
        supervisor, agent = self._joined.supervisor, run.agent
        settings = supervisor.settings
        try:
            result = await run.carried_out()
        except LeaseLostError:
            raise
        except ModelError as error:
            log.warning("no model for a specialist", extra={"agent": agent.id, "code": error.code})
            raise DelegationFailedError(settings.delegation_failure_text) from error
        except Exception as error:
            log.exception("a delegation broke", extra={"agent": agent.id})
            raise DelegationFailedError(settings.delegation_failure_text) from error
        if result is None or run.state_of(result) != "completed":
            raise DelegationFailedError(settings.delegation_failure_text)
        return bounded_result(last_text(result.parts), settings, supervisor.model) if result.answered else ""

    async def _woken(self, letter: Letter, mail: Mailbox) -> str:
        """Carry out the run that a letter woke, as hooks let it: to them it is work that the sender hands on."""
        shared = self._joined
        agent = next(each for each in self._agents if each.id == letter.recipient)
        hooks = shared.supervisor.hooks
        call = ToolCall(letter.call_id, f"{PREFIX}{agent.id}", {"prompt": letter.body})
        refusal = await hooks.before_tool(letter.sender, call)
        if refusal is not None:
            return refusal
        run = SpecialistRun(
            shared, agent, letter.call_id, task_of(letter), mail, shown=letter.body, asked_by=letter.sender
        )
        try:
            text, failed = await self._text_of(run), False
        except DelegationFailedError as error:
            text, failed = error.message, True
        await hooks.after_tool(letter.sender, call, text, error=failed)
        return text


def _withheld(agent: AgentProfile, run: RunContext) -> bool:
    """Tell whether there is nothing that the researcher could look at: a small model would ask it all the same."""
    return agent.id == RESEARCHER and run.workspace is not None and not run.workspace.offers_research
