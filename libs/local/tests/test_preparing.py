"""The command that prepares a workspace runs where and how its operator said."""

from __future__ import annotations

from pathlib import Path

import pytest

from popagent_kit.errors import AppError
from popagent_local.preparing import NothingToPrepareError, PrepareFailedError, prepare
from popagent_sandbox.grant_file import grant_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "project").mkdir(parents=True)
    return tmp_path / "root"


def write(home: Path, content: str) -> None:
    place = grant_file(home, "project")
    place.parent.mkdir(parents=True)
    place.write_text(content)


def test_it_runs_in_the_folder_with_what_the_operator_gives(tmp_path: Path, root: Path) -> None:
    write(
        tmp_path,
        'path = ["/opt/first"]\nprepare = \'pwd > where && echo "$WHO $PATH" > how\'\n[environment]\nWHO = "me"\n',
    )

    prepare(tmp_path, root, "project")

    assert (root / "project" / "where").read_text().strip() == str(root / "project")
    assert (root / "project" / "how").read_text().startswith("me /opt/first:")


def test_a_command_that_fails_says_its_status(tmp_path: Path, root: Path) -> None:
    write(tmp_path, 'prepare = "exit 3"')

    with pytest.raises(PrepareFailedError, match="status 3"):
        prepare(tmp_path, root, "project")


def test_without_a_command_it_says_where_to_write_one(tmp_path: Path, root: Path) -> None:
    with pytest.raises(NothingToPrepareError, match=r"sandbox/project\.toml"):
        prepare(tmp_path, root, "project")


def test_a_workspace_that_leads_elsewhere_is_not_prepared(tmp_path: Path, root: Path) -> None:
    write(tmp_path, 'prepare = "touch sprung"')
    (tmp_path / "outside").mkdir()
    (root / "project").rmdir()
    (root / "project").symlink_to(tmp_path / "outside")

    with pytest.raises(AppError):
        prepare(tmp_path, root, "project")

    assert list((tmp_path / "outside").iterdir()) == []
