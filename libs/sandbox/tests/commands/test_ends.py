"""A command ends with everything it started, however it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark, until_sleeping
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder


async def test_endless_output_ends_with_the_time(commands: Commands) -> None:
    ran = await commands.run("yes", 1)

    assert ran.ended.why == "it took longer than 1 s"
    assert ran.printed.head.startswith("y\ny\n")


async def test_what_takes_too_long_is_ended_with_all_it_started(commands: Commands) -> None:
    mark = new_mark()

    ran = await commands.run(
        f"echo begun; (setsid sleep {mark} &); nohup sleep {mark} & trap '' TERM INT; sleep {mark}", 1
    )

    assert (ran.ended.status, ran.ended.why, ran.printed.head) == (None, "it took longer than 1 s", "begun\n")
    assert ran.took_s < 10
    assert marked_processes(mark) == []


async def test_cancelling_ends_the_whole_tree_before_it_returns(commands: Commands) -> None:
    mark = new_mark()
    running = asyncio.create_task(
        commands.run(f"(setsid sh -c '(sleep {mark} &) ; sleep {mark}' &); sleep {mark}", 600)
    )
    await until_sleeping(mark, 3)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert marked_processes(mark) == []


async def test_what_a_command_leaves_behind_ends_with_it(commands: Commands) -> None:
    mark = new_mark()

    ran = await commands.run(f"sleep {mark} & (setsid sleep {mark} &); echo done", 60)

    assert (ran.ended.status, ran.printed.head) == (0, "done\n")
    assert marked_processes(mark) == []


PARENT = """
import asyncio, sys
from pathlib import Path
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder

async def main():
    commands = Commands(ContainedFolder(Path(sys.argv[1])))
    await commands.start(f"(setsid sleep {sys.argv[2]} &); sleep {sys.argv[2]}")
    await commands.run(f"(setsid sleep {sys.argv[2]} &); sleep {sys.argv[2]}")

asyncio.run(main())
"""


async def test_kill_9_of_the_parent_ends_everything(workspace: Path) -> None:
    mark = new_mark()
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(workspace), mark])
    await until_sleeping(mark, 4)

    parent.kill()
    parent.wait()

    while marked_processes(mark):  # the test's own time limit bounds this
        await asyncio.sleep(0.01)


async def test_closing_ends_all_and_lets_nothing_start(folder: ContainedFolder) -> None:
    mark = new_mark()
    commands = Commands(folder)
    await commands.start(f"(setsid sleep {mark} &); sleep {mark}")
    running = asyncio.create_task(commands.run(f"sleep {mark}"))
    await until_sleeping(mark, 3)

    commands.close()

    assert (await running).ended.why == "its run ended"
    while marked_processes(mark):
        await asyncio.sleep(0.01)
    with pytest.raises(Exception, match="has ended"):
        await commands.run("echo x")
