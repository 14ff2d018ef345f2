"""How much a command may take: programs, memory, files, output."""

from __future__ import annotations

import os
import re
import resource
import time
from pathlib import Path

import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark, printed
from popagent_sandbox import cgroup, disk
from popagent_sandbox.census import Census, Count
from popagent_sandbox.commands import Commands


async def test_a_fork_bomb_is_bounded_and_leaves_nothing(small: Commands) -> None:
    mark = new_mark()
    begun = time.process_time()  # ours alone: whoever counts them must not be kept from everything else

    ran = await small.run(f"bomb() {{ bomb {mark} | bomb {mark} & }}; bomb; sleep {mark}", 4)

    assert ran.ended.status != 0
    assert time.process_time() - begun < 1
    assert marked_processes(mark) == []
    assert await printed(small, "echo next") == "next\n"


def group_of(pid: int) -> Path | None:
    """The control group of a sandbox that the process is in; a threaded one does not list processes, they name it."""
    named = re.search(rf"/({cgroup.PREFIX}\w+)$", Path(f"/proc/{pid}/cgroup").read_text(), re.MULTILINE)
    return None if named is None else next(cgroup.ROOT.rglob(named[1]), None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs are bounded by a control group")
async def test_programs_of_root_are_refused_above_the_bound_and_no_group_stays(small: Commands) -> None:
    mark = new_mark()
    name = await small.start(f"sleep {mark} & echo up; wait")
    assert (await small.look(name, 10)).printed.head == "up\n"
    group = group_of(marked_processes(mark)[-1])
    if group is None:
        pytest.skip("root may make no control group here")

    ran = await small.run(
        "python3 -c 'import os, time\nfor _ in range(90):\n    if os.fork() == 0:\n        time.sleep(30)' 2>&1"
    )
    await small.end(name)

    assert "Resource temporarily unavailable" in ran.printed.head
    assert ran.ended.why != "it ran more than 60 programs at once"
    assert not group.exists()


async def test_of_too_many_programs_no_more_are_counted_than_shows_it(commands: Commands) -> None:
    mark = new_mark()
    name = await commands.start(f"for i in 1 2 3 4 5 6; do sleep {mark} & done; echo up; wait")
    assert (await commands.look(name, 10)).printed.head == "up\n"
    census = Census(marked_processes(mark)[-1])

    assert census.take(4) == Count(5)
    assert census.take(100).processes >= 7
    assert census.take(100).memory_bytes > 0
    census.close()


async def test_memory_is_bounded_for_one_program_and_for_all_together(small: Commands) -> None:
    alone = await small.run("python3 -c 'x = bytearray(400 << 20)'")
    together = await small.run(
        "for i in 1 2 3 4; do python3 -c 'x = bytearray(90 << 20); import time; time.sleep(60)' & done; wait"
    )

    assert (alone.ended.status, "MemoryError" in alone.printed.head) == (1, True)
    assert together.ended.why == "it used more than 200 MiB of memory"


HOLD_SHARED = """
import mmap, os, sys, time
count, size, own = int(sys.argv[1]), int(sys.argv[2]) << 20, sys.argv[3] == "own"
def filled():
    held = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        held[at] = 1
    return held
held = None if own else filled()
for _ in range(count):
    if os.fork() == 0:
        mine = held or filled()
        print(sum(mine[at] for at in range(0, size, 4096)) > 0, flush=True)
        time.sleep(5 if own else 1)
        os._exit(0)
for _ in range(count):
    os.wait()
"""


async def test_memory_that_programs_share_counts_once_and_that_of_each_for_itself(
    workspace: Path, small: Commands
) -> None:
    (workspace / "hold.py").write_text(HOLD_SHARED)

    each = await small.run("python3 hold.py 3 90 own")
    same = await small.run("python3 hold.py 3 90 same")
    forked = await small.run(
        "python3 -c 'import os, time\nx = bytearray(90 << 20)\n"
        "for _ in range(3): os.fork() or (time.sleep(1), os._exit(0))\nfor _ in range(3): os.wait()'"
    )

    assert each.ended.why == "it used more than 200 MiB of memory"
    assert (same.ended.status, same.printed.head) == (0, "True\n" * 3)
    assert forked.ended.status == 0


async def test_files_and_temporary_files_are_bounded(small: Commands) -> None:
    ran = await small.run(
        "head -c 5M /dev/zero > large; ls -s large; head -c 4M /dev/zero > /tmp/a; cp /tmp/a /tmp/b; cp /tmp/a /tmp/c"
    )

    assert "File size limit exceeded" in ran.printed.head or "File too large" in ran.printed.head
    assert "No space left on device" in ran.printed.head


async def test_a_command_that_fills_the_disk_is_ended_while_there_is_room(
    commands: Commands, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = os.statvfs(workspace)
    monkeypatch.setattr(disk, "RESERVED_BYTES", has.f_bavail * has.f_frsize - (256 << 20))
    monkeypatch.setattr(disk, "LARGEST_SHARE", 1)

    ran = await commands.run("for n in $(seq 64); do head -c 16M /dev/zero > part$n; sleep 0.02; done", 60)

    assert ran.ended.status is None
    assert "MiB were left on the disk of the workspace" in ran.ended.why
    assert len(list(workspace.iterdir())) < 64


async def test_a_command_that_makes_very_many_files_is_ended_while_more_fit(
    commands: Commands, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = os.statvfs(workspace)
    if not has.f_files:
        pytest.skip("this file system has no fixed number of files")
    monkeypatch.setattr(disk, "RESERVED_FILES", has.f_favail - 1_500)
    monkeypatch.setattr(disk, "LARGEST_SHARE", 1)

    ran = await commands.run("for n in $(seq 60); do mkdir d$n; touch d$n/{1..100}; sleep 0.02; done; exit 0", 60)

    assert "more files fitted on the disk of the workspace" in ran.ended.why


def test_on_a_disk_that_is_nearly_full_a_command_may_still_clean_up(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "RESERVED_BYTES", 1 << 60)
    monkeypatch.setattr(disk, "RESERVED_FILES", 1 << 60)
    monkeypatch.setattr(disk, "LARGEST_SHARE", 1)
    opened = os.open(workspace, os.O_RDONLY)
    room = disk.DiskRoom(opened)
    os.close(opened)

    assert room.problem() is None
    room.close()


async def gigabytes(commands: Commands, count_mib: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    ran = await commands.run(f"head -c {count_mib}M /dev/zero | tr '\\0' x; echo; echo end", 300)

    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ran.ended.status == 0
    assert ran.printed.left_out_bytes > (count_mib - 1) << 20
    assert ran.printed.tail.endswith("x\nend\n")
    assert grown_kb < 20_000


async def test_memory_does_not_grow_with_the_output(commands: Commands) -> None:
    await gigabytes(commands, 128)


@pytest.mark.full
async def test_memory_does_not_grow_with_a_gigabyte_of_output(commands: Commands) -> None:
    await gigabytes(commands, 1024)
