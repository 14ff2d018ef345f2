"""What the runner asks chat: its limits, and which workspaces, agents and models there are."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from popagent_bus import Bus
from popagent_kit.errors import DependencyError, InvalidInputError
from popagent_proto.chat.agents import ListAgents
from popagent_proto.chat.models import ListModels
from popagent_proto.chat.settings import GetAgentRuntime
from popagent_proto.chat.workspaces import ListWorkspaces
from popagent_task_runner.tasks.deps import Limits

# A workspace that was there so recently is taken to be there: many tasks are made at once.
FRESH_S: Final = 5.0
PAGE: Final = 200


class ChatLimits:
    """The limits of the settings page."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def __call__(self) -> Limits:
        """Return them as they are now."""
        settings = await self._bus.ask(GetAgentRuntime())
        return Limits(settings.background_concurrency, settings.task_timeout_ms / 1000)


class ChatCatalogue:
    """What a new task may name."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._workspaces: dict[str, bool] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def workspace(self, workspace_id: str | None) -> str:
        """Return the id, or that of the default workspace; what was seen some seconds ago counts."""
        asked_at = time.monotonic()
        if (found := self._known(workspace_id)) is not None and asked_at - self._read_at < FRESH_S:
            return found
        async with self._reading:
            if self._read_at < asked_at:  # else somebody has read them meanwhile
                await self._read()
        found = self._known(workspace_id)
        if found is not None:
            return found
        if workspace_id is None:
            raise DependencyError("There is no default workspace at the moment.")
        raise InvalidInputError("There is no workspace with this id.", field="workspaceId")

    async def check_agent(self, agent_id: str) -> None:
        """Raise InvalidInputError unless there is such an agent."""
        agents = await self._bus.ask(ListAgents())
        if agent_id not in {agent.id for agent in agents.items}:
            raise InvalidInputError("There is no agent with this id.", field="agentId")

    async def check_model(self, model: str) -> None:
        """Raise InvalidInputError for a model that its server does not list; an unknown catalogue refuses none."""
        catalogue = await self._bus.ask(ListModels())
        if catalogue.known and model not in catalogue.models:
            raise InvalidInputError("The model server does not offer this model.", field="model")

    def _known(self, workspace_id: str | None) -> str | None:
        if workspace_id is not None:
            return workspace_id if workspace_id in self._workspaces else None
        return next((known for known, is_default in self._workspaces.items() if is_default), None)

    async def _read(self) -> None:
        began_at = time.monotonic()
        found: dict[str, bool] = {}
        cursor: str | None = None
        while True:
            page = await self._bus.ask(ListWorkspaces(cursor=cursor, limit=PAGE))
            found.update({workspace.id: workspace.is_default for workspace in page.items})
            cursor = page.next_cursor
            if cursor is None:
                break
        self._workspaces, self._read_at = found, began_at
