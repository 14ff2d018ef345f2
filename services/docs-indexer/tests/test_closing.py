"""A workspace that is about to be deleted takes no new documentation, and what it has is counted."""

from __future__ import annotations

import asyncio

import pytest

from popagent_proto.common import WorkspaceClosingError
from popagent_proto.docs_indexer.tree import CloseToDocs, OpenToDocs
from popagent_testing.suite_bus import ConnectAs, until

from .running import Docs


async def test_a_closed_workspace_takes_nothing_new_until_it_is_opened(docs: Docs, connect_as: ConnectAs) -> None:
    door = await connect_as("chat")
    page = await docs.create("a/b.md", "x")

    closed = await door.ask(CloseToDocs(workspace_id=docs.workspace, closed_by="me"))
    for late in (docs.create("c.md"), docs.make_folder("c")):
        with pytest.raises(WorkspaceClosingError):
            await late
    written = await docs.write("a/b.md", "y", page.revision)
    await docs.delete("a/b.md", written.revision)
    folder = await door.ask(CloseToDocs(workspace_id=docs.workspace, closed_by="me"))
    await door.ask(OpenToDocs(workspace_id=docs.workspace, closed_by="me"))
    await docs.create("c.md")

    # A folder is documentation, too; a deleted page is none.
    assert (closed.count, folder.count) == (2, 1)


async def test_a_page_that_is_being_stored_is_waited_for_and_counted(docs: Docs, connect_as: ConnectAs) -> None:
    door = await connect_as("chat")
    async with docs.pool.acquire() as conn, conn.transaction():
        await conn.execute("insert into libraries (workspace_id) values ($1)", docs.workspace)
        await conn.execute("insert into folders values ($1, 'a', 'a')", docs.workspace)
        closing = asyncio.create_task(door.ask(CloseToDocs(workspace_id=docs.workspace, closed_by="me")))

        async def waits() -> bool:
            return bool(
                await docs.pool.fetchval("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")
            )

        await until(waits)
    closed = await closing

    assert closed.count == 1
