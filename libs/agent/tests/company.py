"""A supervisor with specialists, each over a scripted model of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from popagent_agent.delegated_run import Specialists
from popagent_agent.delegation import Delegates
from popagent_agent.emitter import ACTIVITY_PART
from popagent_agent.loop import TurnResult
from popagent_agent.ports import DelegateThread
from popagent_agent.run_context import AgentProfile
from popagent_agent.toolset import Tool, Toolset
from popagent_models.profile import ModelProfile
from popagent_models.routing import Route
from popagent_uistream.chunks import Chunk

PROFILE = ModelProfile(32_768, 8, 2_000, 120.0)


def specialist(agent_id: str, **options: Any) -> AgentProfile:
    """A profile whose route names its own model."""
    given = {
        "description": f"Ask {agent_id}.",
        "delegable": True,
        "route": Route(f"{agent_id}-model", "agent", "Its own."),
        "model": PROFILE,
        **options,
    }
    return AgentProfile(agent_id, agent_id.title(), f"You are {agent_id}.", **given)


@dataclass
class Threads:
    """Keeps threads; raises what it is told to."""

    kept: list[DelegateThread] = field(default_factory=list)
    error: Exception | None = None

    async def keep(self, thread: DelegateThread) -> None:
        if self.error is not None:
            raise self.error
        self.kept.append(thread)


@dataclass
class Company:
    """A turn of a supervisor, whose specialists answer by their scripts."""

    turn: Any
    models: dict[str, Any]
    threads: Threads = field(default_factory=Threads)
    result: TurnResult | None = None

    async def run(self) -> TurnResult:
        """Run the supervisor's turn."""
        self.result = await self.turn.run()
        return self.result

    @property
    def activity(self) -> dict[str, dict[str, Any]]:
        """What the stored message tells of each delegation, by the id of the call."""
        assert self.result is not None, "the turn has not run"
        return {part["id"]: part["data"] for part in self.result.parts if part["type"] == ACTIVITY_PART}

    @property
    def deltas(self) -> list[Chunk]:
        """What was sent of all delegations."""
        return [chunk for chunk in self.turn.chunks if chunk["type"] == ACTIVITY_PART]

    @property
    def told(self) -> list[str]:
        """What the supervisor's model reads of its calls in its last step."""
        return [each["content"] for each in self.turn.model.requests[-1].messages if each["role"] == "tool"]


def company(
    kit: Any,
    *replies: Any,
    tools: Sequence[Tool] = (),
    agents: Sequence[AgentProfile] | None = None,
    timeout_s: float = 60.0,
    settings: dict[str, Any] | None = None,
    own_tools: Sequence[Tool] = (),
    **scripts: Any,
) -> Company:
    """Make one: `replies` are the supervisor's, `scripts` the specialists' by their id, `tools` what those may use."""
    profiles = tuple(agents if agents is not None else [specialist(name) for name in scripts])
    context = kit.context(agents=profiles, settings=kit.settings.model_copy(update=settings or {}))
    turn = kit.turn(*replies, context=context, tools=own_tools)
    made = Company(turn, {name: kit.model(list(script)) for name, script in scripts.items()})
    ports = Specialists(
        model_for=lambda agent: made.models[agent.id],
        tools_for=lambda agent: Toolset(tools),
        threads=made.threads,
        timeout_s=timeout_s,
    )
    turn.delegates = Delegates(ports, intents=turn.intents, stop=turn.stop, lease=turn.lease)
    return made
