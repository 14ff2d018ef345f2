"""What git tells of an ordinary checkout, and of those that are not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from popagent_kit.errors import AppError, InvalidInputError
from popagent_sandbox import git_dir
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import PathMissingError, PathRefusedError
from popagent_sandbox.git import Checkout, CommitMissingError, NoCommitError, checkout
from popagent_sandbox.git_dir import NoRepositoryError, RepositoryRefusedError
from popagent_sandbox.git_run import Bounds, GitMissingError, GitNotStartedError, GitSlowError, GitStoppedError
from popagent_testing.repositories import Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    repository = Repository.made(tmp_path_factory.mktemp("git") / "repo")
    repository.commit(
        "First commit", {"README.md": "# Demo\n", "src/main.py": "one\ntwo\nthree\n", "old.txt": "x\n" * 9}
    )
    return repository


@pytest.fixture
def repository(template: Repository, tmp_path: Path) -> Repository:
    return template.copied(tmp_path / "repo")


@pytest.fixture
def opened(repository: Repository) -> Iterator[Checkout]:
    with ContainedFolder(repository.root) as folder, checkout(folder) as found:
        yield found


def look(root: Path, ask: Callable[[Checkout], Any], bounds: Bounds | None = None) -> Any:
    with ContainedFolder(root) as folder, checkout(folder, bounds or Bounds()) as found:
        return ask(found)


def test_status_tells_every_kind_of_change(repository: Repository) -> None:
    repository.git("mv", "old.txt", "new.txt")
    (repository.root / "README.md").unlink()
    repository.write({"src/main.py": "one\n2\nthree\n", "staged.py": "a\n", "fresh.py": "b\n", "fresh/a.py": "c\n"})
    repository.git("add", "staged.py")

    status = look(repository.root, lambda found: found.status())

    assert (status.branch, status.complete, status.hidden) == ("main", True, 0)
    assert {(change.path, change.kind, change.before) for change in status.changes} == {
        ("README.md", "deleted", None),
        ("src/main.py", "modified", None),
        ("new.txt", "renamed", "old.txt"),
        ("staged.py", "added", None),
        ("fresh.py", "new", None),
        ("fresh/", "new", None),
    }


def test_a_conflict_is_told_as_one(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("Side", {"README.md": "side\n"})
    repository.git("checkout", "--quiet", "main")
    repository.commit("Main", {"README.md": "main\n"})
    repository.git("merge", "side", check=False)

    status = look(repository.root, lambda found: found.status())

    assert [(change.path, change.kind) for change in status.changes] == [("README.md", "conflict")]


def test_the_difference_of_the_working_tree_counts_lines_and_holds_new_files(repository: Repository) -> None:
    repository.write({"src/main.py": "one\n2\nthree\nfour\n", "src/new.py": "print('new')\n"})

    found = look(repository.root, lambda each: each.difference())

    assert [(change.path, change.kind, change.added, change.deleted) for change in found.changes] == [
        ("src/main.py", "modified", 2, 1),
        ("src/new.py", "new", None, None),
    ]
    for line in ("-two", "+2", "+four", "new file, not known to git yet", "+print('new')"):
        assert line in found.patch.splitlines()
    assert (found.complete, found.patch_complete) == (True, True)


def test_two_commits_are_compared_and_a_path_narrows_it_down(repository: Repository) -> None:
    repository.commit("Second", {"src/main.py": "1\n", "README.md": "# Changed\n"})
    repository.write({"README.md": "not of interest\n"})

    found = look(repository.root, lambda each: each.difference("HEAD~1", "HEAD", "src"))

    assert [change.path for change in found.changes] == ["src/main.py"]
    assert "+1" in found.patch
    assert "Changed" not in found.patch


def test_the_log_is_the_newest_first_and_follows_a_path(repository: Repository) -> None:
    repository.commit("Second\n\nWith a reason.", {"README.md": "# Two\n"})

    log = look(repository.root, lambda found: found.log())
    of_path = look(repository.root, lambda found: found.log(path="src/main.py"))

    assert [commit.subject for commit in log] == ["Second", "First commit"]
    assert (log[0].author, log[0].at) == ("Ada", "2026-01-02T03:04:05+00:00")
    assert [commit.subject for commit in of_path] == ["First commit"]


def test_a_commit_is_shown_with_its_message_and_what_it_changed(repository: Repository) -> None:
    second = repository.commit("Second\n\nWith a reason.", {"README.md": "# Two\n"})

    commit, changed = look(repository.root, lambda found: found.show("HEAD"))
    first, everything = look(repository.root, lambda found: found.show("HEAD~1"))

    assert (commit.id, commit.message) == (second, "Second\n\nWith a reason.")
    assert [change.path for change in changed.changes] == ["README.md"]
    assert (first.subject, first.parents) == ("First commit", ())
    assert {change.kind for change in everything.changes} == {"added"}


def test_a_file_is_read_as_it_was(repository: Repository) -> None:
    repository.commit("Second", {"README.md": "# Two\n", "bytes.bin": b"\0\1"})

    assert look(repository.root, lambda found: found.file_at("HEAD~1", "README.md")) == "# Demo"
    for path, error in (("missing.py", PathMissingError), ("src", PathRefusedError), ("bytes.bin", PathRefusedError)):
        with pytest.raises(error):
            look(repository.root, partial(Checkout.file_at, revision="HEAD", path=path))


def test_branches_are_listed_with_the_current_one_marked(repository: Repository) -> None:
    repository.git("branch", "feature/x")
    repository.git("pack-refs", "--all")
    repository.git("branch", "loose")

    branches = look(repository.root, lambda found: found.branches())

    assert {(branch.name, branch.current) for branch in branches} == {
        ("main", True),
        ("feature/x", False),
        ("loose", False),
    }


@pytest.mark.parametrize("packed", [False, True])
def test_commits_are_found_by_branch_tag_and_short_id(repository: Repository, packed: bool) -> None:
    first = repository.git("rev-parse", "HEAD").strip()
    repository.git("tag", "v1.0")
    repository.git("update-ref", "refs/remotes/origin/main", first)
    if packed:
        repository.git("pack-refs", "--all")
        repository.git("gc", "--quiet")
    repository.commit("Second", {"README.md": "two\n"})

    for name in ("v1.0", first[:9], "HEAD~1", "main^", "origin/main"):
        assert look(repository.root, partial(Checkout.show, revision=name))[0].id == first


def test_before_the_first_commit_there_is_a_state_and_a_difference_and_no_history(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "fresh")
    repository.write({"a.py": "one\n"})

    status = look(repository.root, lambda found: found.status())
    difference = look(repository.root, lambda found: found.difference())

    assert (status.branch, status.commit, [change.path for change in status.changes]) == ("main", None, ["a.py"])
    assert "+one" in difference.patch
    for ask in (lambda found: found.log(), lambda found: found.show("HEAD"), lambda found: found.show("main")):
        with pytest.raises(NoCommitError, match="no commit yet"):
            look(repository.root, ask)


def test_a_detached_head_has_no_branch(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--detach")

    status = look(repository.root, lambda found: found.status())

    assert (status.branch, status.commit) == (None, repository.git("rev-parse", "HEAD").strip())
    assert look(repository.root, lambda found: found.log())[0].subject == "First commit"


def test_ids_of_the_longer_kind_are_read_too(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "wide", "--object-format=sha256")
    commit = repository.commit("Wide", {"a": "1\n"})

    assert len(commit) == 64
    assert look(repository.root, lambda found: found.show("HEAD")[0].id) == commit
    assert look(repository.root, lambda found: found.status().changes) == ()


def test_a_shallow_clone_ends_where_it_ends(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Second", {"README.md": "two\n"})
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.root}", str(tmp_path / "shallow"))

    assert [commit.subject for commit in look(tmp_path / "shallow", lambda found: found.log())] == ["Second"]


def test_what_the_checkout_ignores_for_itself_is_ignored(repository: Repository) -> None:
    (repository.root / ".git" / "info").mkdir(exist_ok=True)
    (repository.root / ".git" / "info" / "exclude").write_text("local/\n")
    repository.write({"local/x.py": "x\n", "seen.py": "x\n"})

    assert [change.path for change in look(repository.root, lambda found: found.status().changes)] == ["seen.py"]


def test_a_checkout_that_keeps_no_modes_is_clean(repository: Repository) -> None:
    repository.git("config", "core.fileMode", "false")
    (repository.root / "README.md").chmod(0o755)

    assert look(repository.root, lambda found: found.status().changes) == ()


def test_what_agents_never_see_is_counted_and_left_out_everywhere(repository: Repository) -> None:
    repository.commit("Secrets", {".env": "TOKEN=first\n", "id_rsa": "first\n", "config/.env": "TOKEN=first\n"})
    repository.write({".env": "TOKEN=second\n", "server.pem": "second\n", "seen.txt": KEY})
    repository.git("mv", "config/.env", "config/plain")

    status = look(repository.root, lambda found: found.status())
    differences = [
        look(repository.root, lambda found: found.difference()),
        look(repository.root, lambda found: found.difference("HEAD~1", "HEAD")),
        look(repository.root, lambda found: found.show("HEAD"))[1],
    ]

    assert ([change.path for change in status.changes], status.hidden) == (["seen.txt"], 3)
    assert [found.hidden for found in differences] == [3, 3, 3]
    for found in differences:
        assert "TOKEN" not in found.patch
        assert "second" not in found.patch
        assert "MIIE" not in found.patch
    for path in (".env", "config/.env", "src/../.env", ".git/config"):
        for ask in (
            partial(Checkout.file_at, revision="HEAD", path=path),
            partial(Checkout.log, path=path),
            partial(Checkout.difference, path=path),
        ):
            with pytest.raises(PathRefusedError):
                look(repository.root, ask)


def test_a_folder_that_was_a_file_does_not_show_what_is_hidden_in_it(repository: Repository) -> None:
    repository.commit("A file", {"conf": "plain\n"})
    (repository.root / "conf").unlink()
    repository.commit("A folder", {"conf/.env": "TOKEN=1\n"})

    commit, found = look(repository.root, lambda each: each.show("HEAD"))

    assert commit.subject == "A folder"
    assert "TOKEN" not in found.patch
    assert found.hidden == 1


def test_a_long_patch_is_cut_on_a_lines_end_and_says_so(repository: Repository) -> None:
    repository.write({"src/main.py": "".join(f"line number {number}\n" for number in range(5_000))})

    found = look(repository.root, lambda each: each.difference(patch_bytes=2_000))

    assert len(found.patch) <= 2_000
    assert found.patch.splitlines()[-1].startswith("+line number ")
    assert not found.patch_complete
    assert found.complete


def test_what_moves_a_cursor_is_made_harmless(repository: Repository) -> None:
    repository.commit("Title\x1b[2J", {"a\x1b[31m.txt": "x\x1b[2Jy\n", "tab.txt": "a\tb\n"})

    commit, found = look(repository.root, lambda each: each.show("HEAD"))

    assert "\x1b" not in commit.subject + commit.message + found.patch
    assert "+a\tb" in found.patch.splitlines()


def test_a_plain_folder_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(NoRepositoryError, match="no Git repository"):
        look(tmp_path, lambda found: found.status())


def test_a_folder_in_a_repository_does_not_find_the_one_around_it(repository: Repository) -> None:
    with pytest.raises(NoRepositoryError):
        look(repository.root / "src", lambda found: found.status())


def test_what_is_stored_elsewhere_is_refused_in_a_sentence(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "further"), "-b", "further")
    (tmp_path / "linked").mkdir()
    os.symlink(repository.root / ".git", tmp_path / "linked" / ".git")
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(tmp_path / "bare"))
    repository.git("clone", "--quiet", "--shared", str(repository.root), str(tmp_path / "shared"))

    for name, words in (
        ("further", "outside of the workspace"),
        ("linked", "outside of the workspace"),
        ("bare", "bare repository"),
        ("shared", "borrows its history"),
    ):
        with pytest.raises(RepositoryRefusedError, match=words) as refused:
            look(tmp_path / name, lambda found: found.status())
        assert str(tmp_path) not in refused.value.message


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda git: (git / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\5rubbish"), "index"),
        (lambda git: (git / "index").write_bytes(b"rubbish"), "index"),
        (lambda git: (git / "HEAD").write_text("rubbish\n"), "HEAD"),
        (lambda git: (git / "HEAD").write_text("ref: refs/heads/../../../secret\n"), "HEAD"),
        (lambda git: (git / "HEAD").unlink(), "HEAD"),
        (lambda git: shutil.rmtree(git / "objects"), "objects"),
        (lambda git: [each.unlink() for each in (git / "objects").glob("??/*")], "objects are damaged"),
        (lambda git: (git / "packed-refs").write_bytes(b"rubbish\n"), "objects are damaged"),
        (lambda git: (git / "reftable").mkdir(), "reftable"),
    ],
)
def test_a_broken_repository_is_refused_in_a_sentence(
    repository: Repository, tmp_path: Path, break_it: Callable[[Path], object], words: str
) -> None:
    break_it(repository.root / ".git")

    with pytest.raises(RepositoryRefusedError, match=words) as refused:
        look(repository.root, lambda found: (found.status(), found.log(), found.difference()))

    assert str(tmp_path) not in refused.value.message
    assert "popagent-git-" not in refused.value.message


def test_an_index_in_two_files_is_refused_in_a_sentence(repository: Repository) -> None:
    repository.git("update-index", "--split-index")

    with pytest.raises(RepositoryRefusedError, match="index"):
        look(repository.root, lambda found: found.status())


@pytest.mark.parametrize("name", ["missing", "0000000", "HEAD~99", "v9.9", "deadbeef" * 5])
def test_a_commit_that_is_not_there_is_named(opened: Checkout, name: str) -> None:
    with pytest.raises(CommitMissingError, match=name):
        opened.show(name)


def test_without_git_there_is_a_sentence(opened: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_sandbox.git_run.shutil.which", lambda name: None)

    with pytest.raises(GitMissingError, match="Install git"):
        opened.status()


def test_a_script_that_stands_for_git_works_too(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shutil.which("git")} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))

    assert look(repository.root, lambda found: found.log())[0].subject == "First commit"


def test_the_branch_it_stands_on_is_found_among_very_many(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_sandbox.git_dir.MOST_REFS", 3)
    for number in range(9):
        repository.git("branch", f"a{number}")

    status = look(repository.root, lambda found: found.status())

    assert (status.branch, status.commit) == ("main", repository.git("rev-parse", "HEAD").strip())


def test_a_machine_that_has_no_room_or_starts_nothing_is_told_of(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("popagent_sandbox.git_run.git_program", lambda: str(tmp_path / "gone"))
        with pytest.raises(GitNotStartedError):
            look(repository.root, lambda found: found.status())
    monkeypatch.setattr("popagent_sandbox.git_dir.MEMORY", "/nonexistent")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))

    with pytest.raises(RepositoryRefusedError, match="no room"):
        look(repository.root, lambda found: found.status())


def test_time_and_a_stop_end_it(repository: Repository) -> None:
    for number in range(3):
        repository.commit(f"Commit {number}", {f"f{number}": "x"})

    with pytest.raises(GitSlowError):
        look(repository.root, lambda found: found.status(), Bounds(time_s=0.0))
    with pytest.raises(GitStoppedError):
        look(repository.root, lambda found: found.status(), Bounds(stopped=lambda: True))


def test_nothing_is_left_behind_and_nothing_is_written_into_the_checkout(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr("popagent_sandbox.git_dir.MEMORY", str(scratch))
    (repository.root / "README.md").touch()
    before = {path: path.stat().st_mtime_ns for path in (repository.root / ".git").rglob("*")}

    look(repository.root, lambda found: (found.status(), found.difference(), found.log(), found.show("HEAD")))

    assert {path: path.stat().st_mtime_ns for path in (repository.root / ".git").rglob("*")} == before
    assert list(scratch.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    for name in (f"{git_dir.PREFIX}old", f"{git_dir.PREFIX}new", "other"):
        (scratch / name).mkdir(parents=True)
        (scratch / name / "index").write_text("x")
    os.utime(scratch / f"{git_dir.PREFIX}old", (0, 0))
    os.utime(scratch / "other", (0, 0))
    monkeypatch.setattr("popagent_sandbox.git_dir.MEMORY", str(scratch))

    look(repository.root, lambda found: found.status())

    assert {path.name for path in scratch.iterdir()} == {f"{git_dir.PREFIX}new", "other"}


def test_an_unknown_kind_of_input_is_an_answer(opened: Checkout) -> None:
    for name in ("", "HEAD"):
        assert opened.log(name)
    with pytest.raises(InvalidInputError):
        opened.show("HEAD HEAD")
    with pytest.raises(AppError):
        opened.difference("HEAD", "nowhere")
