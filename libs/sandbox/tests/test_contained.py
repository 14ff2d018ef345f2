from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from libs.sandbox.tests.hostile import SECRET, swapped
from popagent_kit.errors import AppError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.denied import why_denied
from popagent_sandbox.errors import PathMissingError, PathRefusedError, WrongKindError
from popagent_sandbox.git import checkout
from popagent_sandbox.hidden import HiddenPaths
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.listing import list_folder
from popagent_sandbox.making import make_folder
from popagent_sandbox.paths import relative_parts
from popagent_sandbox.reading import read_text, stat_path
from popagent_sandbox.searching import grep
from popagent_sandbox.writing import write_text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work" / "repo"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "README.md").write_text("inside\n")
    (root / "src" / "main.py").write_text("print('inside')\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(SECRET)
    (root / ".env").write_text(SECRET)
    (root / ".env.example").write_text("KEY=inside\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    (tmp_path / "outside" / "main.py").write_text(SECRET)
    return root


@pytest.mark.parametrize("path", ["README.md", "./README.md", "src/../README.md", "src//deep/../../README.md"])
def test_a_relative_path_below_the_workspace_is_read(folder: ContainedFolder, path: str) -> None:
    text = read_text(folder, path).text

    assert text == "inside"


def test_an_absolute_path_inside_the_workspace_is_made_relative(folder: ContainedFolder, root: Path) -> None:
    found = read_text(folder, str(root / "src" / "main.py"))
    as_commands_see_it = read_text(folder, "/workspace/src/main.py")

    assert found.path == as_commands_see_it.path == "src/main.py"
    for path in ("/workspace/../outside/secret.txt", "/workspace/.git/config", "/workspaces/README.md"):
        with pytest.raises(PathRefusedError):
            read_text(folder, path)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "src/../../../outside/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/",
        "..",
        "README.md\0.txt",
        "a\nb",
        "a\u2028b",
        "\udcff",
        "x" * 256,
        "x/" * 3_000,
    ],
)
def test_a_path_that_leaves_or_breaks_the_rules_is_refused(folder: ContainedFolder, path: str) -> None:
    with pytest.raises(PathRefusedError):
        read_text(folder, path)


@pytest.mark.parametrize("target", ["{outside}/secret.txt", "../../outside/secret.txt", "/etc/passwd", "/proc/self/fd"])
def test_a_link_that_leaves_the_workspace_is_refused(
    folder: ContainedFolder, root: Path, tmp_path: Path, target: str
) -> None:
    os.symlink(target.format(outside=tmp_path / "outside"), root / "link")

    with pytest.raises(PathRefusedError):
        read_text(folder, "link")


def test_a_folder_link_that_leaves_the_workspace_is_refused_for_what_lies_below_it(
    folder: ContainedFolder, root: Path, tmp_path: Path
) -> None:
    os.symlink(tmp_path / "outside", root / "away")

    with pytest.raises(PathRefusedError):
        read_text(folder, "away/secret.txt")


@pytest.mark.parametrize(
    ("at", "target"),
    [
        ("link", "src/main.py"),
        ("src/deep/link", "../main.py"),
        ("link", "src/deep/../main.py"),
        ("link", "{root}/src/main.py"),
    ],
)
def test_a_link_that_stays_beneath_is_followed_and_its_target_named(
    folder: ContainedFolder, root: Path, at: str, target: str
) -> None:
    os.symlink(target.format(root=root), root / at)

    found = read_text(folder, at)

    assert (found.path, found.text) == ("src/main.py", "print('inside')")


def test_a_link_to_a_denied_file_is_refused(folder: ContainedFolder, root: Path) -> None:
    os.symlink(".git/config", root / "notes.txt")
    os.symlink(".git", root / "storage")

    for path in ("notes.txt", "storage/config"):
        with pytest.raises(PathRefusedError, match="hidden from agents"):
            read_text(folder, path)


def test_links_in_a_circle_are_refused(folder: ContainedFolder, root: Path) -> None:
    os.symlink("b", root / "a")
    os.symlink("a", root / "b")

    with pytest.raises(PathRefusedError, match="cannot be followed"):
        read_text(folder, "a")


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        "src/.env.local",
        ".git",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
        ".ssh/known_hosts",
        "deploy/server.pem",
        "id_rsa",
        "keys/id_ed25519.pub",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".aws/credentials",
        ".docker/config.json",
        ".popagent/credentials/chat",
        ".codebase-index/index.db",
    ],
)
def test_credentials_and_the_repository_storage_are_refused_whether_they_exist_or_not(
    folder: ContainedFolder, path: str
) -> None:
    with pytest.raises(PathRefusedError, match="hidden from agents"):
        read_text(folder, path)


@pytest.mark.parametrize("path", [".env.example", ".gitignore", ".github/workflows/ci.yml", "docs/.environment", "key"])
def test_names_that_only_look_similar_are_not_denied(path: str) -> None:
    assert why_denied(path.split("/")) is None


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("make", [_fifo, _socket])
def test_a_special_file_is_refused_without_waiting(
    folder: ContainedFolder, root: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    make(Path("special"))

    with pytest.raises(PathRefusedError, match="neither a file nor a folder"):
        read_text(folder, "special")


def test_a_missing_path_says_so(folder: ContainedFolder) -> None:
    for path in ("nothing.md", "README.md/below"):
        with pytest.raises(PathMissingError):
            read_text(folder, path)


def test_a_folder_is_no_file(folder: ContainedFolder) -> None:
    with pytest.raises(WrongKindError):
        read_text(folder, "src")


def test_moving_the_root_away_changes_nothing(folder: ContainedFolder, root: Path, tmp_path: Path) -> None:
    root.rename(tmp_path / "moved")
    os.symlink(tmp_path / "outside", root)

    text = read_text(folder, "src/main.py").text

    assert text == "print('inside')"


# Exchanges a folder and a link in one step, again and again, until its input is closed; then tells how often.
def test_no_outside_read_while_the_parent_is_swapped_for_a_link(
    folder: ContainedFolder, root: Path, tmp_path: Path
) -> None:
    os.symlink(tmp_path / "outside", root / "link")
    outside = inside = 0
    with swapped(root / "src", root / "link"):
        for _ in range(10_000):
            try:
                text = read_text(folder, "src/main.py").text
            except AppError:
                continue
            inside += text == "print('inside')"
            outside += SECRET in text

    assert outside == 0
    assert inside > 100


def test_a_call_that_still_runs_keeps_the_folder_open_after_close(root: Path) -> None:
    folder = ContainedFolder(root)
    with folder.open(".") as opened:
        folder.close()
        names = os.listdir(opened.fd)
        fd = folder._fd
        os.fstat(fd)

    assert "README.md" in names
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    with pytest.raises(PathRefusedError, match="closed"):
        stat_path(folder, "README.md")


def test_a_workspace_is_found_below_its_root_and_never_outside(root: Path, tmp_path: Path) -> None:
    os.symlink(tmp_path / "outside", tmp_path / "work" / "away")

    with ContainedFolder.below(tmp_path / "work", "repo") as folder:
        text = read_text(folder, "README.md").text

    assert text == "inside"
    for relative in ("../outside", "away", str(tmp_path / "outside")):
        with pytest.raises(PathRefusedError):
            ContainedFolder.below(tmp_path / "work", relative)
    with pytest.raises(PathMissingError):
        ContainedFolder.below(tmp_path / "work", "nothing")


NAMES = st.sampled_from(
    ["..", ".", "", "src", "deep", "up", "away", "loop", "main.py", "README.md", ".git", "repo", "outside"]
)


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("maze")
    root = base / "repo"
    (root / "src" / "deep").mkdir(parents=True)
    (base / "outside").mkdir()
    for place in (root, root / "src", root / "src" / "deep"):
        (place / "main.py").write_text("inside")
        (place / "README.md").write_text("inside")
    for place in (base, base / "outside"):
        for name in ("main.py", "README.md"):
            (place / name).write_text(SECRET)
    os.symlink("..", root / "src" / "deep" / "up")
    os.symlink("../..", root / "src" / "up")
    os.symlink("../outside", root / "away")
    os.symlink(base / "outside", root / "src" / "outside")
    os.symlink("loop", root / "loop")
    return root


@hypothesis_settings(max_examples=400, deadline=None)
@given(names=st.lists(NAMES, max_size=8), absolute=st.booleans())
def test_no_path_reads_anything_outside(maze: Path, names: list[str], absolute: bool) -> None:
    path = "/".join([str(maze), *names] if absolute else names)

    with ContainedFolder(maze) as folder:
        try:
            text = read_text(folder, path).text
        except AppError:
            return

    assert text == "inside"


@given(path=st.text(max_size=60))
def test_relative_parts_are_clean_or_refused(path: str) -> None:
    try:
        parts = relative_parts(path, ["/home/repo"])
    except PathRefusedError:
        return

    assert not {"", ".", ".."} & set(parts)
    assert all("/" not in part and "\0" not in part for part in parts)


def test_a_refusal_does_not_tell_where_on_the_machine_a_link_points(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/secret-place/of/this-machine")

    with ContainedFolder(tmp_path) as folder, pytest.raises(PathRefusedError) as refused, folder.open("out/x"):
        pass

    assert refused.value.message == "'out/x' leads out of the workspace through a link."


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
def test_a_workspace_that_was_deleted_meanwhile_is_told_by_whatever_is_asked(
    folder: ContainedFolder, root: Path, again: bool
) -> None:
    shutil.rmtree(root)
    if again:
        root.mkdir()
        (root / "README.md").write_text("another\n")
    asks: list[Callable[[], object]] = [
        lambda: read_text(folder, "README.md"),
        lambda: list_folder(folder, "."),
        lambda: grep(folder, "inside"),
        lambda: write_text(folder, "made.txt", "x", ReadLedger()),
        lambda: make_folder(folder, "made"),
        lambda: HiddenPaths(folder).look(),
        lambda: checkout(folder).__enter__(),
    ]

    for ask in asks:
        with pytest.raises(PathMissingError, match="deleted meanwhile"):
            ask()


def test_a_workspace_that_was_moved_meanwhile_stays_the_same_folder(folder: ContainedFolder, root: Path) -> None:
    root.rename(root.with_name("moved"))
    root.symlink_to(root.parent.parent / "outside")

    assert read_text(folder, "README.md").text == "inside"
    with pytest.raises(PathMissingError):
        read_text(folder, "secret.txt")
