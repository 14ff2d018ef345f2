"""What the runner asks chat, over the real bus, of a peer that answers as chat does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from popagent_bus import Bus, Handlers
from popagent_kit.errors import InvalidInputError, UnavailableError
from popagent_proto.chat.settings import AgentRuntimeView, GetAgentRuntime
from popagent_proto.chat.work import CheckWork, WorkPlace
from popagent_task_runner.tasks import chat as asking
from popagent_task_runner.tasks.chat import ChatLimits, WorkChecks
from popagent_task_runner.tasks.deps import Limits
from popagent_testing.runtime_settings import agent_runtime
from popagent_testing.suite_bus import ConnectAs

handlers: Handlers[Peer] = Handlers()


@dataclass
class Peer:
    """Chat, as far as the runner asks it."""

    workspaces: list[str] = field(default_factory=lambda: ["home", "north"])
    asked: int = 0


@handlers.answers(CheckWork)
async def check_work(peer: Peer, query: CheckWork) -> WorkPlace:
    peer.asked += 1
    if query.workspace_id not in (None, *peer.workspaces):
        raise InvalidInputError("There is no workspace with this id.", field="workspaceId")
    if query.agent_id not in (None, "researcher"):
        raise InvalidInputError("There is no such agent.", field="agentId")
    return WorkPlace(workspace_id=query.workspace_id or "home")


@handlers.answers(GetAgentRuntime)
async def get_runtime(_: Peer, query: GetAgentRuntime) -> AgentRuntimeView:
    return agent_runtime(background_concurrency=3, task_timeout_ms=90_000)


@pytest.fixture
async def runner_bus(connect_as: ConnectAs) -> Bus:
    return await connect_as("task-runner")


@pytest.fixture
async def peer(connect_as: ConnectAs) -> AsyncIterator[Peer]:
    answering = Peer()
    bus = await connect_as("chat")
    await bus.serve(handlers, answering)
    yield answering
    await bus.stop_serving()


async def test_many_who_name_the_same_at_once_ask_once_and_the_answer_holds_for_a_moment(
    peer: Peer, runner_bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = WorkChecks(runner_bus)

    found = await asyncio.gather(*(check(None, None, None) for _ in range(20)))
    again = await check(None, None, None)

    assert {*found, again} == {"home"}
    assert peer.asked == 1
    assert await check("north", "researcher", None) == "north"
    peer.workspaces.remove("north")
    assert await check("north", "researcher", None) == "north"
    monkeypatch.setattr(asking, "FRESH_S", 0.0)
    with pytest.raises(InvalidInputError):
        await check("north", "researcher", None)


async def test_what_is_not_there_is_refused_with_its_field_and_asked_for_anew(peer: Peer, runner_bus: Bus) -> None:
    check = WorkChecks(runner_bus)

    for named, field_name in ((("new", None), "workspaceId"), ((None, "nobody"), "agentId")):
        with pytest.raises(InvalidInputError) as refused:
            await check(*named, None)
        assert refused.value.field == field_name
    peer.workspaces.append("new")

    assert await check("new", None, None) == "new"


async def test_whoever_gives_up_takes_the_answer_from_nobody_else(peer: Peer, runner_bus: Bus) -> None:
    check = WorkChecks(runner_bus)
    first = asyncio.create_task(check(None, None, None))
    second = asyncio.create_task(check(None, None, None))
    await asyncio.sleep(0)

    first.cancel()

    assert await second == "home"
    assert peer.asked == 1


async def test_what_is_remembered_is_bounded(peer: Peer, runner_bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOST_KNOWN", 1)
    check = WorkChecks(runner_bus)

    for workspace in ("home", "north", "home"):
        await check(workspace, None, None)

    assert peer.asked == 3


async def test_limits_are_those_of_the_settings_page(peer: Peer, runner_bus: Bus) -> None:
    assert await ChatLimits(runner_bus)() == Limits(3, 90.0, 1.0)


async def test_chat_out_of_reach_is_said(runner_bus: Bus) -> None:
    with pytest.raises(UnavailableError, match="chat"):
        await ChatLimits(runner_bus)()
