from __future__ import annotations

from pathlib import Path

import pytest

from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.grants import Grant, GrantRefusedError, Limits, Mount


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/srv/tools", "relative"),
        ("relative", "/opt/tools"),
        ("/srv/../etc", "/opt/tools"),
        ("/srv/tools", "/opt/../proc"),
        ("/srv/tools", "//opt"),
        ("/srv/tools", "/opt\0"),
        *(
            ("/srv/tools", place)
            for place in ("/", "/proc", "/proc/sys", "/dev/shm", "/tmp", "/workspace", "/usr/x", "/lib")
        ),
    ],
)
def test_a_mount_that_is_no_plain_path_or_takes_a_place_of_ours_is_refused(source: str, target: str) -> None:
    with pytest.raises(GrantRefusedError):
        Grant(mounts=(Mount(source, target),))


@pytest.mark.parametrize("environment", [{"PATH": "/x"}, {"HOME": "/x"}, {"A=B": "x"}, {"": "x"}, {"A": "x\0y"}])
def test_a_variable_that_is_ours_or_none_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(GrantRefusedError):
        Grant(environment=environment)


@pytest.mark.parametrize("entry", ["bin", "/opt/a:/opt/b", "/opt/../bin"])
def test_an_entry_of_the_path_is_one_absolute_path(entry: str) -> None:
    with pytest.raises(GrantRefusedError):
        Grant(path=(entry,))


async def test_what_commands_can_change_is_not_mounted(tmp_path: Path) -> None:
    with ContainedFolder(tmp_path) as folder, pytest.raises(GrantRefusedError, match="lies in the workspace"):
        Commands(folder, Grant(mounts=(Mount(f"{tmp_path}/sub", "/opt/tools"),)))


def test_one_command_cannot_take_more_than_half_of_the_memory() -> None:
    total = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)

    assert Limits.of_this_machine().memory_bytes <= total * 1024 // 2
