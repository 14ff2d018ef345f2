"""A checkout made by an enemy: whatever lies in it, no program of it runs and nothing outside of it is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from popagent_kit.errors import AppError, InvalidInputError
from popagent_sandbox import git_dir, git_run
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.git import Checkout, checkout
from popagent_sandbox.git_run import Bounds
from popagent_sandbox.landlock import LandlockMissingError, version
from popagent_testing.repositories import Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

SECRET = "outside-the-workspace"
KINDS = ("core", "diff", "hook", "filter", "include", "submodule", "promisor", "worktree")


@pytest.fixture(params=["confined by the kernel", "without the kernel's help"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Our git dir alone must do; the kernel's rules are the second wall."""
    if request.param.startswith("without"):

        def missing(_: object) -> None:
            raise LandlockMissingError

        monkeypatch.setattr(git_run, "ruleset", missing)
        monkeypatch.setattr(git_dir, "is_confined", lambda: False)
    elif version() == 0:
        pytest.skip("this kernel has no Landlock")
    return str(request.param)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a mark when somebody starts it."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\n: > {tmp_path}/sprung\ncat 2>/dev/null\n")
    program.chmod(0o755)
    return program


def sprung(trap: Path) -> bool:
    return (trap.parent / "sprung").exists()


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, Repository]:
    top = tmp_path_factory.mktemp("git")
    repository, outside = Repository.made(top / "repo"), Repository.made(top / "outside")
    repository.commit("First", {"README.md": "one\n", "src/main.py": "one\n", "data.bin": b"\0one"})
    repository.commit("Second", {"README.md": "two\n", "data.bin": b"\0two"})
    repository.write({"README.md": "three\n", "data.bin": b"\0three", "new.txt": "new\n"})
    outside.commit(SECRET, {"secret.txt": f"{SECRET}\n"})
    return repository, outside


@pytest.fixture
def repository(templates: tuple[Repository, Repository], tmp_path: Path) -> Repository:
    return templates[0].copied(tmp_path / "work" / "repo")


@pytest.fixture
def outside(templates: tuple[Repository, Repository], tmp_path: Path) -> Repository:
    """Another repository of this machine, which nobody here may look into."""
    return templates[1].copied(tmp_path / "outside")


def everything(root: Path) -> str:
    """Ask everything there is to ask; refusals are answers."""
    told = []
    asks: list[Callable[[Checkout], Any]] = [
        lambda found: found.status(),
        lambda found: found.difference(),
        lambda found: found.difference("HEAD~1"),
        lambda found: found.difference("HEAD~1", "HEAD"),
        lambda found: found.log(),
        lambda found: found.log(path="README.md"),
        lambda found: found.show("HEAD"),
        lambda found: found.branches(),
        lambda found: found.file_at("HEAD", "README.md"),
    ]
    with ContainedFolder(root) as folder:
        for ask in asks:
            try:
                with checkout(folder, Bounds(time_s=10)) as found:
                    told.append(str(ask(found)))
            except AppError as error:
                told.append(error.message)
    return "\n".join(told)


def arm(repository: Repository, trap: Path, kind: str) -> None:
    git = repository.root / ".git"
    config = git / "config"
    extra = ""
    (repository.root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    match kind:
        case "core":
            names = ("fsmonitor", "pager", "editor", "sshCommand", "askPass", "gitProxy", "alternateRefsCommand")
            extra = "[core]\n" + "".join(f"\t{name} = {trap}\n" for name in names)
            extra += f'[pager]\n\tstatus = {trap}\n\tlog = {trap}\n[alias]\n\tstatus = "!{trap}"\n\tlog = "!{trap}"\n'
            extra += f"[credential]\n\thelper = {trap}\n[gpg]\n\tprogram = {trap}\n[log]\n\tshowSignature = true\n"
        case "diff":
            extra = f"[diff]\n\texternal = {trap}\n"
            extra += f'[diff "evil"]\n\ttextconv = {trap}\n\tcommand = {trap}\n\tbinary = true\n'
        case "filter":
            extra = f'[filter "evil"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n'
        case "hook":
            extra = f"[core]\n\thooksPath = {trap.parent}/hooks\n"
            for folder in (trap.parent / "hooks", git / "hooks"):
                folder.mkdir(exist_ok=True)
                for name in ("post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
                    shutil.copy(trap, folder / name)
        case "include":
            (trap.parent / "more").write_text(f"[core]\n\tfsmonitor = {trap}\n[diff]\n\texternal = {trap}\n")
            extra = f'[include]\n\tpath = {trap.parent}/more\n[includeIf "gitdir:/"]\n\tpath = {trap.parent}/more\n'
            (git / "config.worktree").write_text(f"[core]\n\tfsmonitor = {trap}\n")
            extra += "[extensions]\n\tworktreeConfig = true\n"
        case "submodule":
            inner = Repository.made(repository.root / "inner")
            inner.commit("Inner", {"a": "1\n"})
            repository.git("add", "inner")
            repository.git("commit", "--quiet", "--message", "With a submodule")
            inner.write({"a": "2\n"})
            url = f"ext::{trap}"
            (repository.root / ".gitmodules").write_text(f'[submodule "inner"]\n\tpath = inner\n\turl = {url}\n')
            extra = f'[submodule "inner"]\n\turl = {url}\n\tactive = true\n\tupdate = "!{trap}"\n'
            extra += "[submodule]\n\trecurse = true\n[status]\n\tsubmoduleSummary = true\n[diff]\n\tsubmodule = diff\n"
            with (inner.root / ".git" / "config").open("a") as file:
                file.write(f"[core]\n\tfsmonitor = {trap}\n[diff]\n\texternal = {trap}\n")
        case "promisor":
            blob = repository.git("rev-parse", "HEAD:README.md").strip()
            (git / "objects" / blob[:2] / blob[2:]).unlink()
            extra = (
                f'[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = ext::{trap}\n\tpromisor = true\n'
            )
            extra += "[protocol]\n\tallow = always\n"
        case "worktree":
            extra = f"[core]\n\tworktree = {trap.parent}/outside\n"
            (git / "commondir").write_text(f"{trap.parent}/outside/.git\n")
            (git / "gitdir").write_text(f"{trap.parent}/outside/.git\n")
    with config.open("a") as file:
        file.write(extra)


@pytest.mark.parametrize("kind", KINDS)
def test_no_program_of_a_repository_runs(
    kernel: str, kind: str, repository: Repository, outside: Repository, trap: Path
) -> None:
    arm(repository, trap, kind)

    told = everything(repository.root)

    assert not sprung(trap)
    assert SECRET not in told
    if kind not in ("promisor", "submodule"):
        assert "+three" in told


@pytest.mark.parametrize(("kind", "command"), [("core", "status"), ("diff", "diff"), ("filter", "diff")])
def test_the_traps_are_real(kind: str, command: str, repository: Repository, trap: Path) -> None:
    arm(repository, trap, kind)

    repository.git(command, check=False)

    assert sprung(trap)


def test_the_kernel_lets_git_start_nothing_at_all(repository: Repository, trap: Path, tmp_path: Path) -> None:
    if version() == 0:
        pytest.skip("this kernel has no Landlock")
    shutil.copy(shutil.which("true") or "/bin/true", repository.root / "program")
    storage = tmp_path / "storage"
    shutil.copytree(repository.root / ".git", storage)
    (storage / "config").write_text(f"[core]\n\tfsmonitor = {trap}\n[diff]\n\texternal = {repository.root}/program\n")

    with ContainedFolder(repository.root) as folder:
        output = git_run.run(storage, folder, ".git/objects", ["diff"], Bounds())

    assert not sprung(trap)
    assert output.code != 0
    assert "cannot run" in output.errors or "cannot exec" in output.errors


def test_the_kernel_lets_git_read_and_write_nothing_outside(
    repository: Repository, outside: Repository, tmp_path: Path
) -> None:
    if version() == 0:
        pytest.skip("this kernel has no Landlock")
    storage = tmp_path / "storage"
    shutil.copytree(repository.root / ".git", storage)
    commands = (
        ["diff", "--no-index", "/dev/null", str(outside.root / "secret.txt")],
        ["hash-object", "--no-filters", str(outside.root / "secret.txt")],
        ["diff", f"--output={tmp_path}/sprung"],
        ["update-ref", "refs/heads/written", "HEAD"],
    )

    with ContainedFolder(repository.root) as folder:
        outputs = [git_run.run(storage, folder, ".git/objects", command, Bounds()) for command in commands]

    assert all(output.code != 0 and output.data == b"" for output in outputs)
    assert not (tmp_path / "sprung").exists()
    assert not (storage / "refs" / "heads" / "written").exists()


def test_the_environment_of_popagent_reaches_git_in_nothing(
    repository: Repository, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EXTERNAL_DIFF", "SSH_COMMAND", "PAGER", "ASKPASS", "EDITOR", "PROXY_COMMAND"):
        monkeypatch.setenv(f"GIT_{name}", str(trap))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trap))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_TRACE", str(trap.parent / "sprung"))

    assert "+three" in everything(repository.root)
    assert not sprung(trap)


def borrowed(git: Path, outside: Path, how: str) -> None:
    objects, theirs = git / "objects", outside / ".git"
    match how:
        case "alternates":
            (objects / "info").mkdir(exist_ok=True)
            (objects / "info" / "alternates").write_text(f"{theirs}/objects\n")
        case "relative alternates":
            (objects / "info").mkdir(exist_ok=True)
            (objects / "info" / "alternates").write_text("../../../../outside/.git/objects\n")
        case "objects":
            shutil.rmtree(objects)
            os.symlink(theirs / "objects", objects)
        case "packs":
            subprocess.run(["git", "gc", "--quiet"], cwd=outside, check=True, capture_output=True)
            shutil.rmtree(objects / "pack", ignore_errors=True)
            os.symlink(theirs / "objects" / "pack", objects / "pack")
        case "one pack":
            subprocess.run(["git", "gc", "--quiet"], cwd=outside, check=True, capture_output=True)
            (objects / "pack").mkdir(exist_ok=True)
            for pack in (theirs / "objects" / "pack").iterdir():
                os.symlink(pack, objects / "pack" / pack.name)
        case "one object":
            for each in (theirs / "objects").glob("??/*"):
                (objects / each.parent.name).mkdir(exist_ok=True)
                os.symlink(each, objects / each.parent.name / each.name)
        case "storage":
            shutil.rmtree(git)
            os.symlink(theirs, git)
        case "a file":
            shutil.rmtree(git)
            git.write_text(f"gitdir: {theirs}\n")


@pytest.mark.parametrize(
    "how",
    [
        "alternates",
        "relative alternates",
        "objects",
        "packs",
        "one pack",
        "one object",
        "storage",
        "a file",
    ],
)
def test_the_objects_of_another_repository_are_never_told(
    kernel: str, how: str, repository: Repository, outside: Repository
) -> None:
    secret = outside.git("rev-parse", "HEAD").strip()
    borrowed(repository.root / ".git", outside.root, how)
    if not (repository.root / ".git").is_file() and how != "storage":
        (repository.root / ".git" / "refs" / "heads" / "main").write_text(f"{secret}\n")

    assert SECRET not in everything(repository.root)


@pytest.mark.parametrize("name", ["HEAD", "index", "packed-refs", "refs/heads/main", "refs", "info/exclude", "shallow"])
@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_links_and_pipes_in_the_storage_are_not_followed_and_do_not_hang(
    name: str, what: str, repository: Repository, outside: Repository
) -> None:
    place = repository.root / ".git" / name
    if place.is_dir():
        shutil.rmtree(place)
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if what == "link":
        place.symlink_to(outside.root / "secret.txt" if name != "refs" else outside.root / ".git" / "refs")
    elif what == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()

    assert SECRET not in everything(repository.root)


def test_links_and_pipes_among_the_files_are_not_followed_and_do_not_hang(
    kernel: str, repository: Repository, outside: Repository
) -> None:
    root = repository.root
    (root / "README.md").unlink()
    os.mkfifo(root / "README.md")
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(outside.root)
    (root / "new-link").symlink_to(outside.root / "secret.txt")
    (root / ".gitignore").symlink_to(outside.root / "secret.txt")
    os.mkfifo(root / "new-pipe")

    assert f"+{SECRET}" not in everything(root)


@pytest.fixture
def swapping(repository: Repository, outside: Repository) -> Iterator[None]:
    """A tracked folder that is now itself and now a link to somewhere else, as fast as it goes."""
    (outside.root / "main.py").write_text(SECRET)
    here, aside, link = (repository.root / name for name in ("src", "aside", "link"))
    done = threading.Event()
    link.symlink_to(outside.root)

    def swap() -> None:
        while not done.is_set():
            here.rename(aside)
            link.rename(here)
            here.rename(link)
            aside.rename(here)

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    done.set()
    thread.join()


@pytest.mark.usefixtures("swapping")
def test_a_folder_swapped_for_a_link_meanwhile_gives_nothing_from_outside(repository: Repository) -> None:
    if version() == 0:
        pytest.skip("this kernel has no Landlock")
    told = []
    with ContainedFolder(repository.root) as folder:
        for _ in range(25):
            try:
                with checkout(folder) as found:
                    told.append(found.difference(path="src").patch)
            except AppError as error:
                told.append(error.message)

    assert len(told) == 25
    assert SECRET not in "\n".join(told)


HOSTILE_REVISIONS = [
    *("-x", "--upload-pack=x", "--output=sprung", "--ext-diff", "--", "-", "--help", "HEAD --output=sprung"),
    *("HEAD\n--output=sprung", "HEAD\0", "$(touch sprung)", "`touch sprung`", "HEAD;touch sprung", "HEAD|cat", "HEAD&"),
    *("HEAD:README.md", ":/First", "HEAD^{/First}", "@{-1}", "main@{1}", "HEAD~1..HEAD", "HEAD...main", "^HEAD"),
    *("../HEAD", "/etc/passwd", "\x1b[2J", "x" * 201, "*", "ma?n", "[m]ain", "HEAD\\", "ﾀ ", "\ud800"),
]


def test_a_revision_that_is_no_name_is_refused_before_git_sees_it(repository: Repository) -> None:
    with ContainedFolder(repository.root) as folder, checkout(folder) as found:
        for revision in HOSTILE_REVISIONS:
            asks: list[Callable[[], object]] = [
                partial(found.show, revision),
                partial(found.log, revision),
                partial(found.difference, revision),
                partial(found.difference, "HEAD", revision),
                partial(found.file_at, revision, "README.md"),
            ]
            for ask in asks:
                with pytest.raises(InvalidInputError):
                    ask()
    assert list(repository.root.glob("sprung*")) == []


def test_a_path_is_a_name_and_never_a_pattern_or_an_option(repository: Repository) -> None:
    paths = ("--output=sprung", "-x", ":!README.md", ":(exclude)README.md", ":/", "*", "**", "[R]*")

    with ContainedFolder(repository.root) as folder, checkout(folder) as found:
        for path in paths:
            assert found.difference("HEAD~1", "HEAD", path).changes == ()
            assert found.log(path=path) == ()
    assert list(repository.root.glob("sprung*")) == []


def test_branches_named_like_options_are_told_as_names(repository: Repository) -> None:
    head = repository.git("rev-parse", "HEAD").strip()
    for name in ("-x", "--upload-pack=x", "--output=sprung"):
        repository.git("update-ref", f"refs/heads/{name}", head)
    (repository.root / ".git" / "HEAD").write_text("ref: refs/heads/--output=sprung\n")

    with ContainedFolder(repository.root) as folder, checkout(folder) as found:
        names = {branch.name for branch in found.branches()}
        status = found.status()

    assert {"-x", "--upload-pack=x", "--output=sprung"} <= names
    assert status.branch == "--output=sprung"
    assert list(repository.root.glob("sprung*")) == []


def test_names_in_a_tree_that_no_checkout_could_have_are_only_told(repository: Repository) -> None:
    blob = repository.git("rev-parse", "HEAD:README.md").strip()
    raw = b"".join(
        b"100644 " + name + b"\0" + bytes.fromhex(blob)
        for name in (b"..", b".git", b"a\nb", b"c\xff", b"d\x1b[2J", b"e" * 5_000)
    )
    (repository.root / "tree").write_bytes(raw)
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", "tree").strip()
    commit = repository.git("commit-tree", tree, "-m", "Odd names").strip()

    with ContainedFolder(repository.root) as folder, checkout(folder) as found:
        _, changed = found.show(commit)

    assert changed.hidden >= 1
    assert "\x1b" not in changed.patch


def test_a_file_that_is_small_packed_and_large_unpacked_is_bounded(repository: Repository) -> None:
    repository.commit("Large", {"large.txt": b"line\n" * 4_000_000})
    repository.write({"large.txt": b"other\n" * 4_000_000})

    with ContainedFolder(repository.root) as folder, checkout(folder) as found:
        difference = found.difference()
        _, shown = found.show("HEAD")

    for each in (difference, shown):
        assert "Binary files" in each.patch
        assert len(each.patch) < 10_000
