"""The default workspace is made once, whole, and never touched again."""

from __future__ import annotations

from pathlib import Path

import pytest

from popagent_local import default_workspace


def test_a_clone_gives_a_clone_to_read(tmp_path: Path) -> None:
    source = default_workspace.make(tmp_path / "workspace")

    assert source == "a clone of this repository"
    assert (tmp_path / "workspace" / "default" / "README.md").is_file()
    assert (tmp_path / "workspace" / "default" / ".git").is_dir()
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["default"]


def test_without_git_there_is_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_workspace.shutil, "which", lambda name: None)

    source = default_workspace.make(tmp_path)

    assert source == "popagent's README"
    assert (tmp_path / "default" / "README.md").read_text().startswith("# popagent")


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()

    assert default_workspace.make(tmp_path) is None
    assert list((tmp_path / "default").iterdir()) == []
