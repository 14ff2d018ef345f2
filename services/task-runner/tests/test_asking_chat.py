"""What the runner asks chat, over the real bus, of a peer that answers as chat does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from popagent_bus import Bus, Handlers
from popagent_kit.clock import now
from popagent_kit.errors import DependencyError, InvalidInputError, UnavailableError
from popagent_proto.chat.agents import AgentList, AgentView, ListAgents
from popagent_proto.chat.models import ListModels, ModelsView
from popagent_proto.chat.settings import AgentRuntimeView, GetAgentRuntime
from popagent_proto.chat.workspaces import ListWorkspaces, WorkspaceList, WorkspaceRow
from popagent_task_runner.tasks import chat as asking
from popagent_task_runner.tasks.chat import ChatCatalogue, ChatLimits
from popagent_task_runner.tasks.deps import Limits
from popagent_testing.runtime_settings import agent_runtime

handlers: Handlers[Peer] = Handlers()


@dataclass
class Peer:
    """Chat, as far as the runner asks it; two workspaces a page."""

    workspaces: list[str] = field(default_factory=lambda: ["home", "north", "south"])
    default: str | None = "home"
    known: bool = True
    asked: int = 0


def workspace(name: str, is_default: bool) -> WorkspaceRow:
    return WorkspaceRow(id=name, name=name, path=name, is_default=is_default, created_at=now(), revision=0)


@handlers.answers(ListWorkspaces)
async def list_workspaces(peer: Peer, query: ListWorkspaces) -> WorkspaceList:
    peer.asked += 1
    start = int(query.cursor or 0)
    page = peer.workspaces[start : start + 2]
    more = str(start + 2) if start + 2 < len(peer.workspaces) else None
    return WorkspaceList(items=[workspace(name, name == peer.default) for name in page], next_cursor=more)


@handlers.answers(ListAgents)
async def list_agents(_: Peer, query: ListAgents) -> AgentList:
    agent = AgentView(
        id="researcher",
        name="Researcher",
        delegation_description="",
        instructions="",
        source_url=None,
        workspace_access="read-only",
        browser_access=False,
        delegable=True,
        tools=[],
        model_override=None,
        override_is_seeded=False,
        revision=0,
        updated_at=now(),
    )
    return AgentList(items=[agent], tools=[])


@handlers.answers(ListModels)
async def list_models(peer: Peer, query: ListModels) -> ModelsView:
    return ModelsView(models=["big"], context_windows={}, default_model="big", known=peer.known)


@handlers.answers(GetAgentRuntime)
async def get_runtime(_: Peer, query: GetAgentRuntime) -> AgentRuntimeView:
    return agent_runtime(background_concurrency=3, task_timeout_ms=90_000)


@pytest.fixture
async def runner_bus(connect_as: Any) -> Bus:
    bus: Bus = await connect_as("task-runner")
    return bus


@pytest.fixture
async def peer(connect_as: Any) -> AsyncIterator[Peer]:
    answering = Peer()
    bus = await connect_as("chat")
    await bus.serve(handlers, answering)
    yield answering
    await bus.stop_serving()


async def test_a_workspace_is_looked_up_on_every_page_and_remembered_for_a_moment(
    peer: Peer, runner_bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = ChatCatalogue(runner_bus)

    assert [await catalogue.workspace(name) for name in (None, "south", "north", "home")] == [
        *("home", "south", "north", "home")
    ]
    assert peer.asked == 2

    peer.workspaces.append("new")
    assert await catalogue.workspace("new") == "new"
    peer.workspaces.remove("north")
    monkeypatch.setattr(asking, "FRESH_S", 0.0)
    with pytest.raises(InvalidInputError) as refused:
        await catalogue.workspace("north")
    assert refused.value.field == "workspaceId"


async def test_without_a_default_workspace_one_must_be_named(peer: Peer, runner_bus: Bus) -> None:
    peer.default = None

    with pytest.raises(DependencyError):
        await ChatCatalogue(runner_bus).workspace(None)


async def test_agents_and_models_are_refused_by_name_and_an_unknown_catalogue_refuses_no_model(
    peer: Peer, runner_bus: Bus
) -> None:
    catalogue = ChatCatalogue(runner_bus)
    await catalogue.check_agent("researcher")
    await catalogue.check_model("big")

    for check, field_name in ((catalogue.check_agent("nobody"), "agentId"), (catalogue.check_model("none"), "model")):
        with pytest.raises(InvalidInputError) as refused:
            await check
        assert refused.value.field == field_name
    peer.known = False
    await catalogue.check_model("none")


async def test_limits_are_those_of_the_settings_page(peer: Peer, runner_bus: Bus) -> None:
    assert await ChatLimits(runner_bus)() == Limits(3, 90.0)


async def test_chat_out_of_reach_is_said(runner_bus: Bus) -> None:
    with pytest.raises(UnavailableError, match="chat"):
        await ChatLimits(runner_bus)()
