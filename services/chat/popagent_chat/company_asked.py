"""How the company is doing, as turns may ask: workspaces are chat's own, tasks and schedules are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from popagent_agent.company import Company
from popagent_bus import Bus
from popagent_chat.workspaces import store as workspaces
from popagent_db.pool import Pool
from popagent_proto.chat.workspaces import WorkspaceView


def company_of(pool: Pool, bus: Bus) -> Company:
    """Return whom to ask."""

    async def registered(most: int) -> Sequence[WorkspaceView]:
        async with pool.acquire() as conn:
            return await workspaces.LIST.all(conn, None, most)

    return Company(registered, bus.ask, bus.ask)
