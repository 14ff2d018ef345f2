"""`make bench NAME=agents`: what a run costs before its model is asked: the snapshot fetched, the request composed."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args
from unittest.mock import patch
from uuid import uuid4

import uvloop

from popagent_bus import Bus
from popagent_bus.streams import declare
from popagent_chat.turns.composing import first_step
from popagent_chat.turns.context import snapshot
from popagent_chat.turns.store import LeasedTurn
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_kit.ids import new_id
from popagent_models.request import ModelRequest
from popagent_proto import matrix
from popagent_proto.chat.hooks import CreateHook, HookEvent, HookFields
from popagent_proto.chat.skills import CreateSkill, SkillFields
from popagent_testing.model_process import ModelProcess
from popagent_testing.model_replies import Reply
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.suite_bus import PASSWORDS
from services.chat.tests.running import Chat, Door, start_chat
from tests.load.figures import Figures, percentile

SUPERVISOR = "orchistrator"
SPECIALISTS = (
    "researcher",
    "implementer",
    "reviewer",
    "build-maintainer",
    "build-release-manager",
    "community-steward",
)
HOOK_ORIGIN = "http://127.0.0.1:9"
SKILLS_EACH = 4
EARLIER_TURNS = 10
WARM_UP = 20
LAST_TURN = """
select id, user_message_id, assistant_message_id, created_at from turns
where session_id = $1 order by created_at desc limit 1
"""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    alone: int
    at_once: int
    rounds: int


FULL = Size(alone=1_000, at_once=20, rounds=25)
QUICK = Size(alone=50, at_once=20, rounds=1)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[Chat, Door]]:
    """Yield the chat service over a PostgreSQL and a NATS of its own, and a door to it."""
    async with AsyncExitStack() as stack:
        model = ModelProcess()
        nats = NatsServer(folder, config=matrix.nats_authorization(PASSWORDS))
        postgres = PostgresServer(folder, settings={"shared_buffers": "96MB"})
        for server in (model, nats, postgres):
            stack.callback(server.stop)
            server.start()
        model.set_default(Reply(text="The answer of an earlier turn. " * 20))
        await declare(nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
        await bootstrap(postgres.dsn("bench"), ["chat"], {"chat": "bench"})
        dsn = role_dsn(postgres.dsn("bench"), "chat", "bench")
        await migrate(dsn, "chat")
        (folder / "root" / "default").mkdir(parents=True)
        (folder / "root" / "default" / "README.md").write_text("# Weather station\n", encoding="utf-8")
        env = {
            "POPAGENT_MODEL_URL": model.url,
            "POPAGENT_HOME": str(folder / "home"),
            "POPAGENT_HOOK_ORIGINS": HOOK_ORIGIN,
        }
        stack.enter_context(patch.dict(os.environ, env))
        chat = await start_chat(dsn, nats.url, folder / "root", hook_origins=HOOK_ORIGIN)
        stack.push_async_callback(chat.stop)
        gateway = await Bus.connect(
            nats.url, service="gateway", user=matrix.BY_NAME["gateway"].role, password=PASSWORDS["gateway"]
        )
        stack.push_async_callback(gateway.drain)
        yield chat, Door(gateway)


async def furnish(door: Door) -> None:
    """Store hooks of every kind of step, and skills for each of the seven profiles."""
    for number, event in enumerate(get_args(HookEvent)):
        fields = HookFields(name=f"hook {number}", event=event, url=f"{HOOK_ORIGIN}/hook")
        await door.ask(CreateHook(command_id=new_id(), fields=fields))
    for agent in (SUPERVISOR, *SPECIALISTS):
        for number in range(SKILLS_EACH):
            await door.ask(CreateSkill(command_id=new_id(), agent_id=agent, fields=skill(number)))


def skill(number: int) -> SkillFields:
    """Return a skill with a reference."""
    return SkillFields(
        name=f"procedure-{number}",
        description=f"How to carry out procedure {number} of the house.",
        instructions="Look first. Then do one thing, and look again.\n" * 100,
        references={"notes.md": "What was learnt the last time.\n" * 100},
    )


async def talked(chat: Chat, door: Door) -> LeasedTurn:
    """Hold a conversation and return its last turn as its owner would have it."""
    session = new_id()
    for number in range(EARLIER_TURNS):
        await door.say(f"Question {number}: what is there?", session)
    [row] = await chat.pool.fetch(LAST_TURN, session)
    return LeasedTurn(
        **dict(row),
        attempt=1,
        owner=uuid4(),
        boot_id=uuid4(),
        stop_requested=False,
        session_id=session,
        model=None,
        trace_headers={},
        trace_id=None,
        checkpoint=None,
        next_chunk=0,
    )


async def set_up(chat: Chat, turn: LeasedTurn) -> tuple[float, float, ModelRequest]:
    """Return the milliseconds of the snapshot and of composing, and what would be asked."""
    began = time.perf_counter()
    with await snapshot(chat.deps, turn) as context:
        fetched = time.perf_counter()
        request = first_step(context)
        return (fetched - began) * 1_000, (time.perf_counter() - fetched) * 1_000, request


def check(request: ModelRequest) -> None:
    """Refuse to measure a run that has less than it should."""
    offered = {tool["function"]["name"] for tool in request.tools}
    missing = {f"agent-{name}" for name in SPECIALISTS if name != "researcher"} - offered
    system = request.messages[0]["content"]
    if missing or "procedure-3" not in system or len(request.messages) < 2 * EARLIER_TURNS:
        raise RuntimeError(f"the run is not what is meant to be measured: {missing}, {len(request.messages)} messages")


async def measure(size: Size, figures: Figures) -> None:
    """Measure set-ups one at a time, then several at once in this process."""
    with tempfile.TemporaryDirectory(dir=figures.folder) as folder:
        async with running(Path(folder)) as (chat, door):
            turn = await talked(chat, door)
            await furnish(door)
            for _ in range(WARM_UP):
                check((await set_up(chat, turn))[2])
            cpu = time.process_time()
            alone = [await set_up(chat, turn) for _ in range(size.alone)]
            cpu = (time.process_time() - cpu) * 1_000 / size.alone
            began, count = time.perf_counter(), size.rounds * size.at_once
            for _ in range(size.rounds):
                await asyncio.gather(*(set_up(chat, turn) for _ in range(size.at_once)))
            took = time.perf_counter() - began
    request = alone[-1][2]
    figures.add("snapshot fetched, p50", percentile([row[0] for row in alone], 0.5), "ms")
    figures.add("request composed, p50", percentile([row[1] for row in alone], 0.5), "ms")
    both = [row[0] + row[1] for row in alone]
    figures.add("run set-up, p50", percentile(both, 0.5), "ms", 5)
    figures.add("run set-up, p99", percentile(both, 0.99), "ms")
    figures.add("run set-up, CPU without the database's", cpu, "ms")
    figures.add(f"run set-ups, {size.at_once} at once", count / took, "set-ups/s")
    figures.add("tools of the request", len(request.tools), "")
    figures.add("system text of the request", len(request.messages[0]["content"]), "characters")


def main() -> None:
    """Run it as `make bench NAME=agents`."""
    parser = argparse.ArgumentParser(prog="agents")
    parser.add_argument("--quick", action="store_true", help="show that it works; the figures mean little")
    size = QUICK if parser.parse_args().quick else FULL
    figures = Figures("agents")
    uvloop.run(measure(size, figures))
    figures.write()


if __name__ == "__main__":
    main()
