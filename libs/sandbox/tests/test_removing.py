from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from libs.sandbox.tests.hostile import swapped
from popagent_kit.errors import AppError
from popagent_sandbox import removing
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import (
    NotReadError,
    PathMissingError,
    PathProtectedError,
    PathRefusedError,
    PathTakenError,
    StaleReadError,
    WriteFailedError,
)
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.moving import move_path
from popagent_sandbox.reading import read_text
from popagent_sandbox.removing import delete_path
from popagent_sandbox.renameat2 import rename_new
from popagent_sandbox.writing import edit_text, write_text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "README.md").write_text("one\n")
    (root / "src" / "a.py").write_text("a\n")
    (root / "src" / "deep" / "b.py").write_text("b\n")
    (root / "empty").mkdir()
    (root / "AGENTS.md").write_text("Be kind.\n")
    (root / "kept" / "sub").mkdir(parents=True)
    (root / "kept" / "plain.txt").write_text("x")
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "a.py").write_text("outside\n")
    return root


@pytest.fixture
def folder(root: Path) -> Iterator[ContainedFolder]:
    with ContainedFolder(root) as folder:
        yield folder


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_file_and_an_empty_folder_are_deleted(folder: ContainedFolder, root: Path, reads: ReadLedger) -> None:
    assert delete_path(folder, "README.md", reads).entries == 1
    assert delete_path(folder, "empty", reads).is_folder

    assert not {"README.md", "empty"} & set(names(root))


def test_a_folder_with_something_in_it_is_deleted_only_when_that_is_said(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    with pytest.raises(PathTakenError, match="recursive=true"):
        delete_path(folder, "src", reads)

    removed = delete_path(folder, "src", reads, recursive=True)

    assert removed.entries == 4
    assert "src" not in names(root)


def test_what_was_read_and_is_another_by_now_is_neither_deleted_nor_moved(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    reads.saw(read_text(folder, "README.md"))
    (root / "README.md").write_text("somebody's work\n")

    with pytest.raises(StaleReadError):
        delete_path(folder, "README.md", reads)
    with pytest.raises(StaleReadError):
        move_path(folder, "README.md", "docs/README.md", reads)

    assert (root / "README.md").exists()
    assert not (root / "docs").exists()


def test_a_link_is_deleted_itself_and_never_what_it_leads_to(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger
) -> None:
    os.symlink(tmp_path / "outside", root / "away")
    os.symlink(tmp_path / "outside", root / "src" / "away")
    os.mkfifo(root / "src" / "pipe")
    os.mkfifo(root / "pipe")

    delete_path(folder, "away", reads)
    delete_path(folder, "pipe", reads)
    delete_path(folder, "src", reads, recursive=True)

    assert names(tmp_path / "outside") == ["a.py", "deep"]
    assert not {"away", "pipe", "src"} & set(names(root))


@pytest.mark.parametrize(
    "path",
    [
        *(".", "", "/", "..", "../outside", "/etc/hostname", "away/a.py", "away/deep"),
        *(".git", ".git/config", ".env", "AGENTS.md", ".mcp.json", ".agents"),
    ],
)
@pytest.mark.parametrize("act", ["delete", "move from", "move to"])
def test_nothing_outside_hidden_or_protected_is_deleted_or_moved(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger, path: str, act: str
) -> None:
    os.symlink(tmp_path / "outside", root / "away")
    (root / ".git").mkdir()
    (root / ".git" / "config").touch()
    for name in (".env", ".mcp.json"):
        (root / name).touch()
    (root / ".agents").mkdir()
    before = names(tmp_path)
    acts: dict[str, Callable[[], object]] = {
        "delete": lambda: delete_path(folder, path, reads, recursive=True),
        "move from": lambda: move_path(folder, path, "new", reads),
        "move to": lambda: move_path(folder, "README.md", path, reads),
    }

    with pytest.raises(PathRefusedError):
        acts[act]()

    assert names(tmp_path) == before


@pytest.mark.parametrize("inside", [".git/config", ".env", "AGENTS.md", "sub/.mcp.json", "sub/.git/x"])
def test_a_folder_that_holds_something_hidden_or_protected_stays_whole(
    folder: ContainedFolder, root: Path, reads: ReadLedger, inside: str
) -> None:
    (root / "kept" / inside).parent.mkdir(parents=True, exist_ok=True)
    (root / "kept" / inside).touch()
    before = names(root)

    with pytest.raises(PathRefusedError):
        delete_path(folder, "kept", reads, recursive=True)
    with pytest.raises(PathRefusedError):
        move_path(folder, "kept", "moved", reads)

    assert names(root) == before


def test_a_folder_is_not_moved_to_where_what_it_holds_would_be_hidden(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    (root / "kept" / "config.json").touch()
    (root / "kept" / "copilot-instructions.md").touch()

    with pytest.raises(PathRefusedError, match="hidden"):
        move_path(folder, "kept", ".docker", reads)
    with pytest.raises(PathProtectedError):
        move_path(folder, "kept", ".github", reads)

    assert (root / "kept").is_dir()


def test_generated_folders_can_be_deleted_whatever_lies_in_them(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    (root / "node_modules" / "x").mkdir(parents=True)
    for name in ("AGENTS.md", ".npmrc", "cert.pem"):
        (root / "node_modules" / "x" / name).touch()

    delete_path(folder, "node_modules", reads, recursive=True)

    assert "node_modules" not in names(root)


def test_a_tree_that_is_too_large_or_too_deep_is_left_whole(
    folder: ContainedFolder, root: Path, reads: ReadLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "/".join(["deep"] * 110)).mkdir(parents=True)
    before = names(root)

    with pytest.raises(WriteFailedError, match="too deep"):
        delete_path(folder, "deep", reads, recursive=True)
    monkeypatch.setattr(removing, "MOST_ENTRIES", 3)
    with pytest.raises(WriteFailedError, match="more than 3"):
        delete_path(folder, "src", reads, recursive=True)
    with pytest.raises(WriteFailedError, match="was ended"):
        delete_path(folder, "kept", reads, recursive=True, stopped=lambda: True)

    assert names(root) == before


def test_a_file_is_moved_and_stays_read(folder: ContainedFolder, root: Path, reads: ReadLedger) -> None:
    reads.saw(read_text(folder, "src/a.py"))
    reads.saw(read_text(folder, "src/deep/b.py"))

    moved = move_path(folder, "src/a.py", "lib/new/c.py", reads)
    move_path(folder, "src/deep", "lib/deep", reads)
    edit_text(folder, "lib/new/c.py", "a", "c", reads)
    edit_text(folder, "lib/deep/b.py", "b", "d", reads)

    assert (moved.source, moved.target, moved.is_folder) == ("src/a.py", "lib/new/c.py", False)
    assert (root / "lib" / "new" / "c.py").read_text() == "c\n"
    assert (root / "lib" / "deep" / "b.py").read_text() == "d\n"
    with pytest.raises(PathMissingError):
        edit_text(folder, "src/a.py", "a", "c", reads)


@pytest.mark.parametrize("call", [True, False])
def test_nothing_is_moved_over_something_else(
    folder: ContainedFolder, root: Path, reads: ReadLedger, monkeypatch: pytest.MonkeyPatch, call: bool
) -> None:
    if not call:
        monkeypatch.setattr("popagent_sandbox.renameat2._call", None)
    os.symlink("nowhere", root / "dangling")
    before = names(root)

    for target in ("src/a.py", "README.md", "dangling"):
        with pytest.raises(PathTakenError):
            move_path(folder, "README.md", target, reads)
    with pytest.raises(PathTakenError, match=r"give 'src/README\.md'"):
        move_path(folder, "README.md", "src", reads)
    with pytest.raises(PathTakenError):
        move_path(folder, "src", "empty", reads)
    with pytest.raises(PathRefusedError, match="into itself"):
        move_path(folder, "src", "src/deep/src", reads)
    with folder.place("README.md") as here, pytest.raises(FileExistsError):
        rename_new(here.fd, "README.md", here.fd, "AGENTS.md")

    assert names(root) == before
    move_path(folder, "empty", "full", reads)


def test_what_is_missing_is_said_and_nothing_is_made_for_it(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    with pytest.raises(PathMissingError):
        delete_path(folder, "nothing", reads)
    with pytest.raises(PathMissingError):
        move_path(folder, "nothing", "new/place", reads)

    assert not (root / "new").exists()


def test_a_path_that_was_deleted_is_new_again(folder: ContainedFolder, root: Path, reads: ReadLedger) -> None:
    reads.saw(read_text(folder, "README.md"))
    delete_path(folder, "README.md", reads)

    write_text(folder, "README.md", "new\n", reads)

    (root / "src" / "a.py").write_text("other\n")
    with pytest.raises(NotReadError):
        write_text(folder, "src/a.py", "x\n", reads)


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_folder_that_becomes_a_link_at_any_moment_of_its_deletion_is_not_followed(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger, moment: int
) -> None:
    (tmp_path / "outside" / "deep" / "b.py").write_text("outside\n")
    asked = 0

    def stopped() -> bool:  # asked before each name is opened or deleted
        nonlocal asked
        asked += 1
        if asked == moment and (root / "src" / "deep").is_dir():
            (root / "src" / "deep").rename(root / "src" / "away")
            os.symlink(tmp_path / "outside" / "deep", root / "src" / "deep")
        return False

    with suppress(AppError):
        delete_path(folder, "src", reads, recursive=True, stopped=stopped)

    assert asked >= min(moment, 4)
    assert names(tmp_path / "outside") == ["a.py", "deep", "deep/b.py"]


def _changes_that_went_through(folder: ContainedFolder, reads: ReadLedger, place: str, number: int) -> int:
    acts: tuple[Callable[[], object], ...] = (
        lambda: move_path(folder, f"src/{number}.txt", f"{place}/{number}/x.txt", reads),
        lambda: delete_path(folder, f"{place}/{number}", reads, recursive=True),
        lambda: move_path(folder, f"{place}/a.py", f"src/a{number}.py", reads),
    )
    done = 0
    for act in acts:
        try:
            act()
        except AppError:
            continue
        done += 1
    return done


@pytest.mark.timeout(60)
def test_nothing_outside_is_deleted_or_moved_while_a_folder_is_swapped_for_a_link(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger
) -> None:
    os.symlink(tmp_path / "outside", root / "src" / "link")
    done = number = 0
    with swapped(root / "src" / "deep", root / "src" / "link"):
        while done < 30 or number < 100:
            for place in ("src/deep", "src/link"):
                (root / "src" / f"{number}.txt").touch()
                done += _changes_that_went_through(folder, reads, place, number)
            number += 1

    assert names(tmp_path / "outside") == ["a.py", "deep"]
    assert (tmp_path / "outside" / "a.py").read_text() == "outside\n"
