from __future__ import annotations

import errno
import fcntl
import hashlib
import multiprocessing
import os
import resource
import threading
from pathlib import Path

import pytest

from libs.sandbox.tests.hostile import contents, read, swapped
from popagent_kit.errors import AppError
from popagent_sandbox import replacing
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import (
    FileBusyError,
    NotReadError,
    PathTakenError,
    StaleReadError,
    WriteFailedError,
)
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.listing import list_folder
from popagent_sandbox.making import make_folder
from popagent_sandbox.reading import read_text
from popagent_sandbox.writing import edit_text, write_text


@pytest.mark.parametrize("nameless", [True, False])
def test_a_full_disk_leaves_the_file_and_nothing_beside_it(
    root: Path, reads: ReadLedger, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    if not nameless:
        monkeypatch.setattr(replacing, "_NAMELESS", 0)
    before = contents(root)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096))
        with ContainedFolder(root) as folder:
            read(folder, "README.md", reads)
            for path in ("README.md", "new/deep/file.txt"):
                try:
                    write_text(folder, path, "x" * 10_000, reads)
                except WriteFailedError:
                    continue
                os._exit(1)
        os._exit(0)

    child = multiprocessing.get_context("fork").Process(target=limited)
    child.start()
    child.join(20)

    assert child.exitcode == 0
    assert contents(root) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_only_when_it_is_flushed_leaves_the_file(
    folder: ContainedFolder, root: Path, reads: ReadLedger, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    before = contents(root)

    def full(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteFailedError, match="no room left on the disk"):
        write_text(folder, "new.txt", "x\n", reads)

    assert contents(root) == before


@pytest.mark.parametrize("nameless", [True, False])
def test_nothing_is_left_beside_the_file_however_it_was_written(
    folder: ContainedFolder, root: Path, reads: ReadLedger, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    if not nameless:
        monkeypatch.setattr(replacing, "_NAMELESS", 0)
    names = sorted(os.listdir(root))
    read(folder, "README.md", reads)

    write_text(folder, "README.md", "x\n", reads)
    write_text(folder, "new.txt", "x\n", reads)
    with pytest.raises(WriteFailedError, match="was ended before"):
        write_text(folder, "README.md", "y\n", reads, stopped=lambda: True)

    assert sorted(os.listdir(root)) == sorted([*names, "new.txt"])
    assert (root / "README.md").read_text() == "x\n"


@pytest.mark.timeout(30)
def test_a_locked_file_is_waited_for_and_then_reported_as_busy(
    folder: ContainedFolder, root: Path, reads: ReadLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(folder, "README.md", reads)
    with (root / "README.md").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        monkeypatch.setattr(replacing, "LOCK_WAIT_S", 0.05)
        with pytest.raises(FileBusyError):
            edit_text(folder, "README.md", "two", "2", reads)
        monkeypatch.undo()
        waiting = threading.Thread(target=edit_text, args=(folder, "README.md", "two", "2", reads))
        waiting.start()
    waiting.join(20)

    assert (root / "README.md").read_text() == "one\n2\nthree\n"


def _count_up(root: Path, path: str, times: int) -> None:
    """Raise the number in the file by one so often, each time from what it really read."""
    reads = ReadLedger()
    with ContainedFolder(root) as folder:
        while times:
            found = read_text(folder, path)
            reads.saw(found)
            try:
                write_text(folder, path, str(int(found.text) + 1), reads)
            except StaleReadError:
                continue
            times -= 1


@pytest.mark.timeout(60)
def test_no_change_of_several_processes_and_threads_is_lost(root: Path) -> None:
    (root / "count").write_text("0")
    fork = multiprocessing.get_context("fork")
    workers: list[multiprocessing.process.BaseProcess | threading.Thread] = [
        fork.Process(target=_count_up, args=(root, "count", 25)) for _ in range(3)
    ]
    workers += [threading.Thread(target=_count_up, args=(root, "count", 25)) for _ in range(2)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert (root / "count").read_text() == "125"


@pytest.mark.parametrize("nameless", [True, False])
def test_of_many_who_make_the_same_file_one_does(
    folder: ContainedFolder, root: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    if not nameless:
        monkeypatch.setattr(replacing, "_NAMELESS", 0)
    together, made, refused = threading.Barrier(6), [], []

    def make(number: int) -> None:
        together.wait()
        try:
            made.append(write_text(folder, "one/new.txt", f"{number}\n", ReadLedger()).after)
        except (NotReadError, PathTakenError) as error:
            refused.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(made), len(refused)) == (1, 5)
    assert (root / "one" / "new.txt").read_bytes() == made[0]
    assert os.listdir(root / "one") == ["new.txt"]


def test_a_file_that_somebody_changes_while_it_is_edited_is_left_as_it_is(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    read(folder, "README.md", reads)

    def stopped() -> bool:  # asked last before the file is put in place
        (root / "README.md").write_text("somebody else's\n")
        return False

    with pytest.raises(StaleReadError, match="just now"):
        edit_text(folder, "README.md", "two", "2", reads, stopped=stopped)

    assert (root / "README.md").read_text() == "somebody else's\n"
    assert not [name for name in os.listdir(root) if name.endswith(".tmp")]


def _write_in_turns(root: Path, texts: tuple[str, str]) -> None:
    reads = ReadLedger()
    with ContainedFolder(root) as folder:
        reads.wrote("README.md", hashlib.sha256((root / "README.md").read_bytes()).hexdigest(), whole=True)
        while True:
            for text in texts:
                write_text(folder, "README.md", text, reads)


@pytest.mark.timeout(60)
def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(root: Path, folder: ContainedFolder) -> None:
    texts = ("a" * 300_000 + "\n", "b" * 300_000 + "\n")
    (root / "README.md").write_text(texts[0])
    seen = set()

    for _ in range(4):
        writer = multiprocessing.get_context("fork").Process(target=_write_in_turns, args=(root, texts))
        writer.start()
        inode = (root / "README.md").stat().st_ino
        while (root / "README.md").stat().st_ino == inode:
            assert writer.is_alive()
        writer.kill()
        writer.join()
        seen.add((root / "README.md").read_text())

    assert seen <= set(texts)
    assert [entry.path for entry in list_folder(folder).entries] == ["src", "AGENTS.md", "README.md"]


def _changes_that_went_through(folder: ContainedFolder, reads: ReadLedger, number: int) -> int:
    done = 0
    for act in (
        lambda: read(folder, "src/main.py", reads),
        lambda: write_text(folder, "src/main.py", f"print({number})\n", reads),
        lambda: write_text(folder, f"src/new_{number}.py", "x\n", reads),
        lambda: make_folder(folder, f"src/folder_{number}"),
    ):
        try:
            act()
        except AppError:
            continue
        done += 1
    return done


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["src", "src/main.py"])
def test_nothing_is_changed_outside_while_the_folder_or_the_file_is_swapped_for_a_link(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger, part: str
) -> None:
    outside = tmp_path / "outside"
    os.symlink(outside if part == "src" else outside / "main.py", root / "link")
    before = contents(outside)
    done = number = 0
    with swapped(root / part, root / "link"):
        while done < 60 or number < 200:
            done += _changes_that_went_through(folder, reads, number)
            number += 1

    assert contents(outside) == before
