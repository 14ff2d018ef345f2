"""What a turn would ask its model first, composed without a turn: nothing is called, stored or told."""

from __future__ import annotations

from typing import NoReturn

from popagent_agent.delegated_run import Specialists
from popagent_agent.delegation import Delegates
from popagent_agent.loop import AgentRun, first_request
from popagent_agent.ports import DelegateThread, ToolCall
from popagent_agent.stopping import StopSignal
from popagent_chat.turns.context import TurnContext
from popagent_models.request import ModelRequest
from popagent_tools.catalogue import tools_of


def agent_run(context: TurnContext, message_id: str) -> AgentRun:
    """Return the run that answers the message of `context` with the message `message_id`."""
    return AgentRun(
        context=context.run,
        message_id=message_id,
        history=context.history,
        message=context.message,
        max_steps=context.run.settings.supervisor_max_steps,
    )


def first_step(context: TurnContext) -> ModelRequest:
    """Return the request of the first step."""
    ports = _NothingRuns()
    specialists = Specialists(model_for=lambda _: context.model, tools_for=tools_of, threads=ports)
    delegates = Delegates(specialists, intents=ports, stop=StopSignal(), lease=ports)
    return first_request(agent_run(context, context.message["id"]), tools_of(context.run.agent), delegates)


class _NothingRuns:
    """The ports of a run that is only composed."""

    async def keep(self, thread: DelegateThread) -> NoReturn:
        raise RuntimeError("no specialist runs here")

    async def record(self, step: int, call: ToolCall) -> NoReturn:
        raise RuntimeError("no tool is called here")

    def check(self) -> NoReturn:
        raise RuntimeError("no turn is held here")
