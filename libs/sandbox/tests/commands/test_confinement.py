"""Where no sandbox can be made nothing runs, and the reason is told."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from popagent_sandbox.commands import Commands
from popagent_sandbox.confined import ConfinementError
from popagent_sandbox.confinement import confinement
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.grants import Grant, Mount

DENIED = """
import asyncio, sys, tempfile
from pathlib import Path
from popagent_sandbox.commands import Commands
from popagent_sandbox.confined import ConfinementError
from popagent_sandbox.contained import ContainedFolder

async def main():
    folder = Path(tempfile.mkdtemp())
    try:
        await Commands(ContainedFolder(folder)).run("touch ran")
    except ConfinementError as error:
        print(error.message, (folder / "ran").exists())

asyncio.run(main())
"""


async def test_where_namespaces_are_denied_nothing_runs_and_the_reason_is_told() -> None:
    program = confinement().program or ""
    without = [
        program,
        "--unshare-user",
        "--disable-userns",
        "--dev-bind",
        "/",
        "/",
        "--",
        sys.executable,
        "-c",
        DENIED,
    ]

    done = await asyncio.to_thread(subprocess.run, without, capture_output=True, text=True, check=False)

    assert "Commands cannot be confined here, so agents cannot run any (" in done.stdout
    assert "docs/sandbox.md" in done.stdout
    assert done.stdout.endswith(" False\n")


async def test_a_sandbox_that_cannot_be_set_up_runs_nothing_and_says_why(folder: ContainedFolder) -> None:
    commands = Commands(folder, Grant((Mount("/nowhere/at/all", "/opt/gone"),)))

    with pytest.raises(ConfinementError, match=r"could not be set up: .*No such file"):
        await commands.run("echo ran > ran")

    assert os.listdir(folder.root) == []
