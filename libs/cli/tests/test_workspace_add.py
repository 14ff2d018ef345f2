"""`popagent workspace add URL`: cloned below the root of the popagent that answers, then registered there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_testing.repositories import Repository, can_be_served, served

from .conftest import Peer, Run, view

pytestmark = pytest.mark.skipif(not can_be_served(), reason="there is no git daemon")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    Repository.made(tmp_path / "served" / "house.git").commit("First", {"README.md": "one\n"})
    with served(tmp_path / "served") as address:
        yield f"{address}/house.git"


@pytest.fixture
def root(tmp_path: Path, peer: Peer) -> Path:
    """The workspace root of the peer, with its default workspace."""
    root = tmp_path / "root"
    (root / "default").mkdir(parents=True)
    row = {**view("WorkspaceList")["items"][0], "path": "default", "exists": True}
    peer.answers["workspace list"] = {"items": [row], "nextCursor": None, "root": str(root)}
    return root


def test_a_url_is_cloned_and_registered(peer: Peer, run: Run, url: str, root: Path) -> None:
    result = run("workspace", "add", url, "--name", "The house", "--folder", "home")

    assert result.exit_code == 0, result.stderr
    assert peer.asked[-1].body == {"name": "The house", "path": "home"}
    assert (root / "home" / "README.md").read_text() == "one\n"


def test_what_is_not_registered_is_not_left_behind(peer: Peer, run: Run, url: str, root: Path) -> None:
    refused = {"error": "There is no directory house below the workspace root.", "code": "invalid_input"}
    peer.answers["workspace add"] = (refused, 422)

    result = run("workspace", "add", url)

    assert result.exit_code == 1
    assert "There is no directory house" in result.stderr
    assert [path.name for path in root.iterdir()] == ["default"]


def test_a_root_that_is_not_here_is_told_and_nothing_is_cloned(peer: Peer, run: Run, url: str, root: Path) -> None:
    (root / "default").rmdir()

    result = run("workspace", "add", url)

    assert result.exit_code == 1
    assert "is not on this machine" in result.stderr
    assert list(root.iterdir()) == []
    assert [asked.verb for asked in peer.asked] == ["workspace list"]


def test_a_password_in_a_url_is_refused_before_anything_is_asked(peer: Peer, run: Run, root: Path) -> None:
    result = run("workspace", "add", "https://ada:hunter22@example.org/p.git")
    folder = run("workspace", "add", "default", "--folder", "home")

    assert (result.exit_code, folder.exit_code) == (1, 1)
    assert "hunter22" not in result.output + result.stderr
    assert peer.asked == []
