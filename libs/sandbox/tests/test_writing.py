from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from libs.sandbox.tests.hostile import contents, read
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import (
    NotReadError,
    StaleReadError,
)
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.making import make_folder
from popagent_sandbox.reading import read_text
from popagent_sandbox.writing import edit_text, write_text


def test_a_new_file_is_made_with_the_folders_above_it_and_ordinary_rights(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    change = write_text(folder, "docs/guide/start.md", "# Start\n", reads)

    made = root / "docs" / "guide" / "start.md"
    umask = os.umask(0o022)
    os.umask(umask)
    assert (change.path, change.before, change.after) == ("docs/guide/start.md", None, b"# Start\n")
    assert made.read_text() == "# Start\n"
    assert stat.S_IMODE(made.stat().st_mode) == 0o666 & ~umask
    assert os.listdir(made.parent) == ["start.md"]


def test_a_file_that_was_not_read_is_neither_written_nor_edited(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    before = contents(root)

    with pytest.raises(NotReadError, match=r"Read 'README.md' first"):
        write_text(folder, "README.md", "gone\n", reads)
    with pytest.raises(NotReadError, match=r"Read 'README.md' first"):
        edit_text(folder, "README.md", "two", "2", reads)
    assert contents(root) == before


def test_changes_that_follow_each_other_need_one_read(folder: ContainedFolder, root: Path, reads: ReadLedger) -> None:
    read(folder, "README.md", reads)

    edit_text(folder, "README.md", "two", "2", reads)
    edit_text(folder, "README.md", "three", "3", reads)
    write_text(folder, "README.md", "all new\n", reads)
    edit_text(folder, "README.md", "new", "old", reads)
    write_text(folder, "fresh.txt", "a\n", reads)
    edit_text(folder, "fresh.txt", "a", "b", reads)

    assert (root / "README.md").read_text() == "all old\n"
    assert (root / "fresh.txt").read_text() == "b\n"


def test_two_agents_of_one_run_do_not_overwrite_each_other(folder: ContainedFolder, root: Path) -> None:
    one, other = ReadLedger(), ReadLedger()
    read(folder, "README.md", one)
    read(folder, "README.md", other)

    edit_text(folder, "README.md", "two", "2", one)
    with pytest.raises(StaleReadError, match="has changed since you read it"):
        edit_text(folder, "README.md", "three", "3", other)
    with pytest.raises(StaleReadError):
        write_text(folder, "README.md", "mine\n", other)
    read(folder, "README.md", other)
    edit_text(folder, "README.md", "three", "3", other)

    assert (root / "README.md").read_text() == "one\n2\n3\n"


def test_a_file_that_was_deleted_since_it_was_read_is_not_made_again_unawares(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    read(folder, "README.md", reads)
    (root / "README.md").unlink()

    with pytest.raises(StaleReadError, match="was deleted since you read it"):
        write_text(folder, "README.md", "again\n", reads)
    write_text(folder, "README.md", "again\n", reads)

    assert (root / "README.md").read_text() == "again\n"


def test_a_file_that_was_read_in_part_can_be_edited_and_not_written_whole(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    reads.saw(read_text(folder, "README.md", limit=1))

    with pytest.raises(NotReadError, match="only a part"):
        write_text(folder, "README.md", "short\n", reads)
    edit_text(folder, "README.md", "two", "2", reads)
    with pytest.raises(NotReadError, match="only a part"):
        write_text(folder, "README.md", "short\n", reads)
    reads.saw(read_text(folder, "README.md", limit=1))
    reads.saw(read_text(folder, "README.md", offset=3))
    with pytest.raises(NotReadError, match="only a part"):
        write_text(folder, "README.md", "short\n", reads)
    reads.saw(read_text(folder, "README.md", offset=2, limit=1))
    write_text(folder, "README.md", "short\n", reads)

    assert (root / "README.md").read_text() == "short\n"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4755])
def test_a_changed_file_keeps_its_mode_but_no_rights_of_another_user(
    folder: ContainedFolder, root: Path, reads: ReadLedger, mode: int
) -> None:
    (root / "README.md").chmod(mode)
    read(folder, "README.md", reads)

    edit_text(folder, "README.md", "two", "2", reads)

    assert stat.S_IMODE((root / "README.md").stat().st_mode) == mode & 0o777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_a_person_stay_the_persons_when_popagent_runs_as_root(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    for path in (root, root / "README.md"):
        os.chown(path, 4_321, 4_322)
    read(folder, "README.md", reads)

    edit_text(folder, "README.md", "two", "2", reads)
    write_text(folder, "new/file.txt", "x\n", reads)

    for name in ("README.md", "new", "new/file.txt"):
        assert ((root / name).stat().st_uid, (root / name).stat().st_gid) == (4_321, 4_322)


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb", "a\nc\n", b"a\r\nc"),
        (b"a\nb", "a\nc\n", b"a\nc"),
        (b"a\nb\n", "a\nc", b"a\nc\n"),
        (b"a\r\nb\r\n", "a\nc", b"a\r\nc\r\n"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"\xef\xbb\xbfa\n", "c\n", b"\xef\xbb\xbfc\n"),
        (b"", "c\n", b"c\n"),
        (b"a\n", "", b""),
    ],
)
def test_a_whole_new_content_keeps_what_a_read_does_not_show(
    folder: ContainedFolder, root: Path, reads: ReadLedger, before: bytes, text: str, after: bytes
) -> None:
    (root / "file.txt").write_bytes(before)
    read(folder, "file.txt", reads)

    write_text(folder, "file.txt", text, reads)

    assert (root / "file.txt").read_bytes() == after


def test_the_same_content_again_changes_nothing_on_the_disk(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    read(folder, "README.md", reads)
    before = (root / "README.md").stat()

    change = write_text(folder, "README.md", "one\ntwo\nthree", reads)

    assert change.before == change.after
    assert (root / "README.md").stat().st_ino == before.st_ino


def test_folders_are_made_one_below_the_other_and_once(folder: ContainedFolder, root: Path) -> None:
    assert make_folder(folder, "a/b/c") == ("a", "a/b", "a/b/c")
    assert make_folder(folder, "a/b/c/") == ()
    assert (root / "a" / "b" / "c").is_dir()
