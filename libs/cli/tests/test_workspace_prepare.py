"""`popagent workspace prepare`: the operator's command, in the folder of a workspace of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from popagent_sandbox.grant_file import grant_file

from .conftest import Peer, Run, view


@pytest.fixture
def root(tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "root"
    (root / "house").mkdir(parents=True)
    row = {**view("WorkspaceList")["items"][0], "name": "House", "path": "house", "exists": True}
    peer.answers["workspace list"] = {"items": [row], "nextCursor": None, "root": str(root)}
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path / "home"))
    return root


def test_a_workspace_is_prepared_by_its_name(run: Run, root: Path, tmp_path: Path) -> None:
    place = grant_file(tmp_path / "home", "house")
    place.parent.mkdir(parents=True)
    place.write_text('prepare = "touch prepared"')

    result = run("workspace", "prepare", "house")

    assert (result.exit_code, (root / "house" / "prepared").exists()) == (0, True)
    assert "House is prepared: touch prepared" in result.stderr


def test_without_a_command_the_file_to_write_is_named(run: Run, root: Path) -> None:
    result = run("workspace", "prepare", "house")

    assert result.exit_code == 1
    assert "house.toml" in result.stderr
