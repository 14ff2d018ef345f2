from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_sandbox.commands import Commands
from popagent_sandbox.confinement import confinement_problem
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.grants import Grant, Limits, Mount

PYTHON = Grant(
    mounts=(Mount(os.path.realpath(sys.base_prefix), "/opt/python"),),
    path=("/opt/python/bin",),
    environment={"PYTHONDONTWRITEBYTECODE": "1"},
)
SMALL = Limits(processes=60, memory_bytes=200 << 20, temporary_bytes=8 << 20, file_bytes=4 << 20)


@pytest.fixture(autouse=True)
def commands_can_be_confined() -> None:
    if (problem := confinement_problem()) is not None:
        pytest.skip(problem)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(workspace: Path) -> Iterator[ContainedFolder]:
    with ContainedFolder(workspace) as opened:
        yield opened


@pytest.fixture
def commands(folder: ContainedFolder) -> Iterator[Commands]:
    made = Commands(folder)
    yield made
    made.close()


@pytest.fixture
def small(folder: ContainedFolder) -> Iterator[Commands]:
    made = Commands(folder, PYTHON, SMALL)
    yield made
    made.close()
