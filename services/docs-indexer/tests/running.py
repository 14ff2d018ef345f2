"""The docs-indexer in this process, wired as its host wires it, and the door through which it is asked."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from popagent_bus import Bus, Handlers
from popagent_db.pool import Pool, open_pool
from popagent_docs_indexer.app import build
from popagent_host import Service, ServiceSettings
from popagent_host.health import Health
from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto import matrix
from popagent_proto.base import Request
from popagent_proto.chat.work import CheckWork, WorkPlace
from popagent_proto.docs_indexer.pages import (
    CreatePage,
    CreatePageBody,
    DeletePage,
    GetPage,
    MoveBody,
    PageDeletedView,
    PageSummary,
    PageView,
    WritePage,
    WritePageBody,
)
from popagent_proto.docs_indexer.tree import DeleteFolder, FolderDeletedView, ListDocs, MakeFolder, MoveDocs, MovedView
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_testing.suite_bus import PASSWORDS

R = TypeVar("R", bound=BaseModel)


@dataclass
class Known:
    """Workspaces that chat knows."""

    ids: set[str] = field(default_factory=set)
    asked: int = 0


chat: Handlers[Known] = Handlers()


@chat.answers(CheckWork)
async def check_work(known: Known, query: CheckWork) -> WorkPlace:
    known.asked += 1
    if query.workspace_id not in known.ids:
        raise InvalidInputError("There is no workspace with this id.", field="workspaceId")
    return WorkPlace(workspace_id=query.workspace_id or "")


@dataclass
class Docs:
    """What a person does with the documentation of a workspace."""

    bus: Bus
    pool: Pool
    known: Known
    workspace: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        self.known.ids.add(self.workspace)

    def elsewhere(self, *, known: bool = True) -> Docs:
        """The same in another workspace, which chat knows or not."""
        return Docs(self.bus, self.pool, self.known if known else Known())

    async def ask(self, message: Request[R]) -> R:
        return await self.bus.ask(message)

    async def create(self, path: str, body: str = "", **fields: Any) -> PageSummary:
        given = {"command_id": new_id(), "workspace_id": self.workspace, **fields}
        return await self.ask(CreatePage(page=CreatePageBody(path=path, body=body), **given))

    async def write(self, path: str, body: str, revision: str) -> PageSummary:
        page = WritePageBody(path=path, body=body, revision=revision)
        return await self.ask(WritePage(workspace_id=self.workspace, page=page))

    async def read(self, path: str) -> PageView:
        return await self.ask(GetPage(workspace_id=self.workspace, path=path))

    async def move(self, path: str, to: str, revision: str | None = None) -> MovedView:
        return await self.ask(MoveDocs(workspace_id=self.workspace, move=MoveBody(path=path, to=to, revision=revision)))

    async def delete(self, path: str, revision: str) -> PageDeletedView:
        return await self.ask(DeletePage(workspace_id=self.workspace, path=path, revision=revision))

    async def make_folder(self, path: str) -> None:
        await self.ask(MakeFolder(workspace_id=self.workspace, path=path))

    async def delete_folder(self, path: str, revision: str | None = None) -> FolderDeletedView:
        return await self.ask(DeleteFolder(workspace_id=self.workspace, path=path, revision=revision))

    async def tree(self, **fields: Any) -> list[str]:
        listed = await self.ask(ListDocs(workspace_id=self.workspace, **fields))
        return [entry.path + ("/" if entry.kind == "folder" else "") for entry in listed.items]

    async def events(self) -> list[str]:
        """Subjects of what was told, in order, without what they have in common."""
        rows = await self.pool.fetch(
            "select subject, payload::jsonb as told from outbox where payload like '%' || $1 || '%' order by position",
            self.workspace,
        )
        return [f"{row['subject'].split('.')[3]} {row['told'].get('change', '')}".strip() for row in rows]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def start_docs_indexer(dsn: str, nats_url: str, closing: AsyncExitStack, **settings: Any) -> Pool:
    """Start one more docs-indexer; `closing` ends it."""
    pool = await open_pool(dsn, application_name="popagent-docs-indexer", max_size=4)
    closing.push_async_callback(pool.close)
    user = matrix.BY_NAME["docs-indexer"].role
    bus = await Bus.connect(nats_url, service="docs-indexer", user=user, password=PASSWORDS["docs-indexer"])
    closing.push_async_callback(bus.drain)
    pulse = Pulse(pool, period_s=0.05)
    pulse.start()
    closing.push_async_callback(pulse.stop)
    outbox = Outbox(pool, bus.publish)
    outbox.start(pulse)
    closing.push_async_callback(outbox.stop)
    service: Service[ServiceSettings] = Service(
        "docs-indexer",
        ServiceSettings.for_service("docs-indexer").model_validate(settings),
        pool,
        bus,
        outbox,
        pulse,
        Holder.of_this_process(),
        Health("docs-indexer", "test"),
        closing,
        asyncio.get_running_loop().create_future(),
    )
    await build(service)
    assert service.served is not None
    await bus.serve(service.served.handlers, service.served.deps)
    closing.push_async_callback(bus.stop_serving)
    return pool
