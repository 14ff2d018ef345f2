"""Chat is killed in the middle of a clone and of a deletion: both go on, and nothing is left half done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from popagent_testing.repositories import Repository, can_be_served, served
from tests.suite import Suite
from tests.talk import Talk

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not can_be_served(), reason="there is no git daemon"),
]
CHATS = 400


@asynccontextmanager
async def way_that_holds_the_first(address: str) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A way to a server on which the first connection is taken and never answered."""
    there, taken = urlsplit(address), asyncio.Event()
    pumps: set[asyncio.Task[None]] = set()

    async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not taken.is_set():
            taken.set()
            await reader.read(-1)
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection(there.hostname, there.port)
        pumps.add(asyncio.create_task(carry(reader, far_writer)))
        await carry(far_reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"git://127.0.0.1:{server.sockets[0].getsockname()[1]}", taken
    finally:
        server.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def until(talk: Talk, job_id: str, reached: float) -> dict[str, Any]:
    """Return the job once it is so far, or over."""
    async with asyncio.timeout(90):
        while True:
            job: dict[str, Any] = await talk.json("GET", f"/api/jobs/{job_id}")
            if job["progress"] >= reached or job["state"] in ("completed", "failed"):
                return job
            await asyncio.sleep(0.02)


async def test_a_clone_and_a_deletion_go_on_after_a_kill(suite: Suite, talk: Talk, tmp_path: Path) -> None:
    Repository.made(tmp_path / "served" / "orchard.git").commit("First", {"README.md": "one\n"})
    (suite.workspaces / "meadow").mkdir()
    meadow = await talk.json("POST", "/api/workspaces", {"name": "Meadow", "path": "meadow"})
    for number in range(CHATS):
        await talk.json("POST", "/api/sessions", {"id": f"meadow-{number}", "workspaceId": meadow["id"]})
    with served(tmp_path / "served") as address:
        async with way_that_holds_the_first(address) as (way, held):
            clone = await talk.json("POST", "/api/workspaces", {"url": f"{way}/orchard.git", "name": "Orchard"})
            await held.wait()
            deletion = await talk.json("DELETE", f"/api/workspaces/{meadow['id']}/sessions")
            before = await until(talk, deletion["id"], 0.05)
            gits = [each for each in psutil.Process(suite.pid("chat")).children(recursive=True) if "git" in each.name()]
            old = suite.kill("chat")
            await suite.until_back("chat", old)
            again = await talk.json("DELETE", f"/api/workspaces/{meadow['id']}/sessions")
            kept = await talk.json("POST", "/api/sessions", {"id": "meadow-new", "workspaceId": meadow["id"]})
            deleted, cloned = await asyncio.gather(until(talk, deletion["id"], 2), until(talk, clone["id"], 2))

    assert (before["state"], again["id"]) == ("running", deletion["id"])
    assert deleted["result"] == {"deleted": CHATS, "keptCount": 0, "kept": []}
    left = await talk.json("GET", f"/api/sessions?workspaceId={meadow['id']}")
    assert [each["id"] for each in left["items"]] == [kept["id"]]
    assert gits
    assert not [each for each in gits if each.is_running()]
    assert (cloned["state"], cloned["error"]) == ("completed", None)
    assert (suite.workspaces / "orchard" / "README.md").read_text() == "one\n"
    assert not list(suite.workspaces.glob(".cloning-*"))
    assert not (suite.workspaces / "orchard" / ".git" / "popagent-clone").exists()
    rows = [each for each in (await talk.json("GET", "/api/workspaces"))["items"] if each["path"] == "orchard"]
    assert [(each["id"], each["name"], each["branch"]) for each in rows] == [(clone["about"], "Orchard", "main")]
