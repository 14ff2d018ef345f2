from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.sandbox.tests.hostile import make_workspace
from popagent_sandbox import contained
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.openat2 import Openat2MissingError


@pytest.fixture(params=["openat2", "walk"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every rule holds with the kernel's call and with the walk that replaces it."""
    if request.param == "walk":

        def missing(*_: object) -> int:
            raise Openat2MissingError

        monkeypatch.setattr(contained, "open_beneath", missing)
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


@pytest.fixture
def folder(root: Path, opener: str) -> Iterator[ContainedFolder]:
    with ContainedFolder(root) as folder:
        yield folder


@pytest.fixture
def reads() -> ReadLedger:
    return ReadLedger()
