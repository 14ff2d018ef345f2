from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_sandbox.commands import Commands
from popagent_sandbox.confinement import confinement, confinement_problem
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.orphans import end_orphans

pytestmark = pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def orphan() -> Iterator[int]:
    """A sandbox whose first process waits for the one that made it, which was killed."""
    waits, never = os.pipe()
    options = ["--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--info-fd", "1"]
    maker = subprocess.Popen(
        [confinement().program or "", *options, "--userns-block-fd", str(waits), "sleep", "1000"],
        pass_fds=[waits],
        stdout=subprocess.DEVNULL,
    )
    while not (found := children_of(maker.pid)):
        time.sleep(0.001)
    maker.kill()
    maker.wait()
    held = os.pidfd_open(found[0])
    yield held
    os.close(held)
    os.close(waits)
    os.close(never)


def lives(held: int, within_s: float) -> bool:
    return not select.select([held], [], [], within_s)[0]


async def test_what_waits_for_a_dead_parent_is_ended_and_a_working_sandbox_is_not(orphan: int, tmp_path: Path) -> None:
    program = confinement().program or ""
    with ContainedFolder(tmp_path) as folder:
        commands = Commands(folder)
        name = await commands.start("sleep 1000")
        assert lives(orphan, 0)

        ended = end_orphans([program])

        assert ended == 1
        assert not lives(orphan, 30)
        assert (await commands.look(name)).ended is None
        assert end_orphans(["/usr/bin/env"]) == 0
        await commands.end(name)
