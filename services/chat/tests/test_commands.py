"""A turn whose agent runs commands: confined in its workspace, written down before, dead when the turn is over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from popagent_db.pool import Pool
from popagent_host.health import OK
from popagent_kit.ids import new_id
from popagent_proto.chat.turns import StopTurn
from popagent_sandbox import bubblewrap
from popagent_sandbox.confinement import confinement, confinement_problem
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Chat, Door

confined = pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))


@pytest.fixture
async def runs_commands(pool: Pool) -> AsyncIterator[None]:
    """Let the orchestrator run commands for one test."""
    await pool.execute("create table if not exists kept_agents as table agents")
    await pool.execute(
        "update agents set workspace_access = 'read-write', tools = array['shell', 'shellProcess'] "
        "where id = 'orchistrator'"
    )
    yield
    await pool.execute("delete from agents")
    await pool.execute("insert into agents table kept_agents")


def sleeping(mark: str) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if arguments == f"sleep\0{mark}\0".encode():
            found.append(name)
    return found


async def test_no_seeded_agent_that_only_reads_runs_commands_and_the_orchestrator_neither(
    chat: Chat, pool: Pool
) -> None:
    able = await pool.fetch("select * from agents where tools && array['shell', 'shellProcess']")

    assert {agent["workspace_access"] for agent in able} <= {"read-write"}
    assert "orchistrator" not in {agent["id"] for agent in able}


@confined
async def test_a_command_runs_in_the_workspace_and_was_written_down(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, root: Path, runs_commands: None
) -> None:
    call = ScriptedCall("shell", '{"command": "ls; echo made > made.txt; cat /etc/shadow"}')
    model.script(Reply(tool_calls=(call,)), Reply(text="It is made."))

    turn = await door.say("make it", new_id())

    [output] = [part.get("output") for part in turn.message["parts"] if "toolCallId" in part]
    assert "README.md" in str(output)
    assert "Exit status 1." in str(output)
    assert "No such file" in str(output)
    assert (root / "default" / "made.txt").read_text() == "made\n"
    assert await pool.fetchval("select tool from turn_intents where turn_id = $1", turn.view.turn_id) == "shell"


@confined
async def test_what_runs_in_the_background_ends_with_the_turn(
    chat: Chat, door: Door, model: ModelServer, runs_commands: None
) -> None:
    mark = f"4{os.getpid()}0001"
    start = ScriptedCall(
        "shell", f'{{"command": "echo up; (setsid sleep {mark} &) ; sleep {mark}", "background": true}}'
    )
    look = ScriptedCall("shellProcess", '{"process": "p1"}')
    model.script(Reply(tool_calls=(start,)), Reply(tool_calls=(look,)), Reply(text="It runs."))

    turn = await door.say("start it", new_id())

    outputs = [str(part.get("output")) for part in turn.message["parts"] if "toolCallId" in part]
    assert "Started in the background as p1" in outputs[0]
    assert "Still running." in outputs[1]
    assert "up" in outputs[1]
    while sleeping(mark):  # the test's own time limit bounds this
        await asyncio.sleep(0.01)


@confined
@pytest.mark.parametrize("how", ["stopped", "interrupted"])
async def test_a_command_ends_with_a_turn_that_is_stopped_or_whose_service_stops(
    chat: Chat, door: Door, model: ModelServer, runs_commands: None, how: str
) -> None:
    mark = f"4{os.getpid()}000{len(how)}"
    call = ScriptedCall("shell", f'{{"command": "(setsid sleep {mark} &); sleep {mark}"}}')
    model.script(Reply(tool_calls=(call,)))
    turn = await door.start("wait", new_id())
    while len(sleeping(mark)) < 2:
        await asyncio.sleep(0.01)

    if how == "stopped":
        await door.ask(StopTurn(session_id=turn.view.session_id))
    else:
        await chat.stop()
    await turn.read()

    assert sleeping(mark) == []


async def test_where_commands_cannot_be_confined_health_says_so_and_nothing_else_is_less_well(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "programs", list)
    chat.service.health.move_to(OK)
    confinement.cache_clear()
    try:
        health = await chat.service.health.view()
    finally:
        confinement.cache_clear()

    assert health.checks["shell"] == "bubblewrap is not installed, so agents cannot run commands. Install it."
    assert health.ready
