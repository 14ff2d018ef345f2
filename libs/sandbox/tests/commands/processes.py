"""What a command printed, and the processes it became: a mark in their arguments tells them from all others."""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import suppress
from pathlib import Path

from popagent_sandbox.commands import Commands


def marked_processes(mark: str) -> list[int]:
    """Return the processes of this machine, inside of sandboxes as well, whose arguments hold `mark`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in arguments and int(name) != os.getpid():
            found.append(int(name))
    return found


def new_mark() -> str:
    return f"4{uuid.uuid4().int % 10**12}"


async def until_sleeping(mark: str, count: int) -> None:
    """Return as soon as so many `sleep` with `mark` run; their sandboxes are complete then."""
    while True:
        arguments = [Path(f"/proc/{pid}/cmdline") for pid in marked_processes(mark)]
        with suppress(OSError):
            if sum(file.read_bytes().startswith(b"sleep\0") for file in arguments) >= count:
                return
        await asyncio.sleep(0.01)


async def printed(commands: Commands, command: str, timeout_s: float = 60) -> str:
    ran = await commands.run(command, timeout_s)
    return ran.printed.head
