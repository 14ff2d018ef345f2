"""How a command runs, is looked at in the background and is refused; each is a real one, in a real sandbox."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark
from popagent_sandbox.commands import CommandRefusedError, Commands, NoSuchCommandError


async def test_a_command_runs_in_the_workspace_and_its_status_is_told(workspace: Path, commands: Commands) -> None:
    (workspace / "a.txt").write_text("found\n")

    ran = await commands.run("pwd; cat a.txt; echo to stderr >&2; exit 7")

    assert (ran.ended.status, ran.printed.head) == (7, "/workspace\nfound\nto stderr\n")


async def test_a_command_that_a_signal_ended_has_its_status(commands: Commands) -> None:
    assert (await commands.run("kill -9 $$")).ended.status == 137


async def test_what_is_made_belongs_to_who_runs_popagent(workspace: Path, commands: Commands) -> None:
    await commands.run("mkdir made; echo x > made/file; id -u > id")

    status = (workspace / "made" / "file").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (os.getuid(), os.getgid(), 0o644)
    assert (workspace / "id").read_text() == "1000\n"


async def test_a_command_in_the_background_is_looked_at_and_ended(workspace: Path, commands: Commands) -> None:
    mark = new_mark()
    name = await commands.start(f"echo first; while [ ! -e go ]; do sleep 0.01; done; echo second; sleep {mark}")

    seen = ""
    while "first" not in seen:
        seen += (await commands.look(name, 5)).printed.head
    (workspace / "go").touch()
    more = ""
    while "second" not in more:
        more += (await commands.look(name, 5)).printed.head
    look = await commands.look(name)
    ended = await commands.end(name)

    assert (seen, more, look.printed.head, look.ended) == ("first\n", "second\n", "", None)
    assert ended.ended is not None
    assert ended.ended.why == "it was stopped"
    assert marked_processes(mark) == []


async def test_a_command_in_the_background_that_ends_by_itself_tells_its_status(commands: Commands) -> None:
    name = await commands.start("exit 4")

    look = await commands.look(name, 60)

    assert look.ended.status == 4


async def test_few_commands_run_in_the_background_at_once(commands: Commands) -> None:
    names = [await commands.start("sleep 100") for _ in range(4)]

    with pytest.raises(Exception, match="4 commands run in the background already"):
        await commands.start("sleep 100")
    with pytest.raises(NoSuchCommandError, match=r"p9\. There is: p1, p2, p3, p4"):
        await commands.look("p9")
    await commands.end(names[0])
    assert await commands.start("true") == "p5"


@pytest.mark.parametrize("command", ["echo \0", "echo \ud800", "#" * 100_001])
async def test_a_command_that_is_no_text_or_too_long_is_refused(commands: Commands, command: str) -> None:
    with pytest.raises(CommandRefusedError):
        await commands.run(command)
