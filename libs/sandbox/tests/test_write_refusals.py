from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from libs.sandbox.tests.hostile import SECRET, contents, read
from popagent_kit.errors import AppError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import (
    ContentRefusedError,
    PathMissingError,
    PathProtectedError,
    PathRefusedError,
    TextNotFoundError,
    UnreadableFileError,
    WrongKindError,
)
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.making import make_folder
from popagent_sandbox.reading import LARGEST_FILE_BYTES
from popagent_sandbox.writing import edit_text, write_text
from popagent_telemetry import register_secret

# Kinds of paths that leave the workspace, whatever is done to them.
ESCAPES = [
    "../outside/main.py",
    "src/../../outside/main.py",
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/cwd/x",
    "..",
    "/",
    ".",
    "",
    "away/main.py",
    "away/new.py",
    "away/deep/new.py",
    "proc/x",
]
ODD = ["a\0b", "a\nb", "a\x1b[2J", "a\u2028b", "\udcff", "x" * 256, "x/" * 3_000, "a\u202etxt.exe", "read\u200bme"]
HIDDEN = [
    ".git/config",
    ".git/hooks/post-commit",
    ".git",
    ".GIT/config",
    ".git./config",
    ".g\u200cit/config",
    "git~1/config",
    "sub/.git/hooks/x",
    "storage/config",
    "src/../.git/config",
    "{root}/.git/config",
    ".env",
    ".env.local",
    ".ENV",
    "src/.env",
    ".ssh/authorized_keys",
    "id_rsa",
    "server.pem",
    ".netrc",
    ".npmrc",
    ".docker/config.json",
    ".popagent/x",
    ".codebase-index/x",
]
PROTECTED = [
    "AGENTS.md",
    "agents.md",
    "AGENTS_DOCUMENTATION.md",
    "sub/AGENTS.md",
    ".agents/skills/x/SKILL.md",
    "CLAUDE.md",
    ".claude/settings.json",
    ".mcp.json",
    ".vscode/tasks.json",
    ".husky/pre-commit",
    ".gitmodules",
    "{root}/.mcp.json",
    "./src/../.mcp.json",
    ".MCP.JSON",
    ".mcp.json.",
]


@pytest.mark.parametrize("path", [*ESCAPES, *ODD, *HIDDEN, *PROTECTED])
def test_no_change_leaves_the_workspace_or_touches_what_is_hidden_or_protected(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger, path: str
) -> None:
    os.symlink(tmp_path / "outside", root / "away")
    os.symlink("/proc/self/cwd", root / "proc")
    os.symlink(".git", root / "storage")
    before = contents(tmp_path)
    path = path.format(root=root)

    with pytest.raises(PathRefusedError) as written:
        write_text(folder, path, "x\n", reads)
    with pytest.raises((PathRefusedError, PathMissingError)) as edited:
        edit_text(folder, path, "o", "x", reads)
    if path not in (".", ""):  # the top folder is there already
        with pytest.raises(PathRefusedError):
            make_folder(folder, path)

    for message in (written.value.message, edited.value.message):
        assert SECRET not in message
        assert str(tmp_path / "outside") not in message
    assert contents(tmp_path) == before


def test_what_is_protected_can_be_read_and_the_refusal_says_so(folder: ContainedFolder, reads: ReadLedger) -> None:
    read(folder, "AGENTS.md", reads)

    with pytest.raises(PathProtectedError, match=r"is protected: .* You may read it\. .* tell the person"):
        edit_text(folder, "AGENTS.md", "e", "x", reads)


@pytest.mark.parametrize(
    "path", ["%2e%2e%2foutside%2fmain.py", "%2e%2e/%2e%2e/x", "..%00/x", "...", "-rf", "$HOME", "a;b|c"]
)
def test_a_path_is_taken_by_the_letter_and_nothing_in_it_is_decoded_or_expanded(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger, path: str
) -> None:
    outside = contents(tmp_path / "outside")

    write_text(folder, path, "x\n", reads)

    assert (root / path).read_text() == "x\n"
    assert contents(tmp_path / "outside") == outside


def test_another_name_of_the_same_file_keeps_its_content(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger
) -> None:
    os.link(tmp_path / "outside" / "main.py", root / "hard.py")
    read(folder, "hard.py", reads)

    write_text(folder, "hard.py", "x\n", reads)

    assert (tmp_path / "outside" / "main.py").read_text() == SECRET


def test_no_descriptor_stays_open_after_a_refusal(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger
) -> None:
    os.symlink(tmp_path / "outside", root / "away")
    os.mkfifo(root / "pipe")
    before = len(os.listdir("/proc/self/fd"))

    for path in ("../x", "away/x", "pipe", "pipe/x", "src", "README.md", ".env", "AGENTS.md", "new/\u200b", "x" * 300):
        for act in (write_text, lambda *given: edit_text(*given[:3], "x", given[3])):
            with pytest.raises(AppError):
                act(folder, path, "x\n", reads)

    assert len(os.listdir("/proc/self/fd")) == before


def test_an_absolute_path_inside_the_workspace_is_made_relative(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    read(folder, "README.md", reads)

    edit_text(folder, str(root / "README.md"), "two", "2", reads)

    assert (root / "README.md").read_text() == "one\n2\nthree\n"


def test_a_link_is_not_written_through_and_its_target_is_named(
    folder: ContainedFolder, root: Path, tmp_path: Path, reads: ReadLedger
) -> None:
    os.symlink("src/main.py", root / "link.py")
    os.symlink(tmp_path / "outside" / "main.py", root / "out.py")
    os.symlink(tmp_path / "outside" / "new.py", root / "dangling.py")
    read(folder, "link.py", reads)
    before = contents(tmp_path)

    with pytest.raises(PathRefusedError, match=r"is a link to 'src/main.py'. Use that path."):
        edit_text(folder, "link.py", "inside", "x", reads)
    for name in ("out.py", "dangling.py"):
        with pytest.raises(PathRefusedError, match="is a link that cannot be followed") as refused:
            write_text(folder, name, "x\n", reads)
        assert "outside/" not in refused.value.message
    assert contents(tmp_path) == before
    edit_text(folder, "src/main.py", "inside", "x", reads)


def test_a_folder_link_that_stays_inside_is_a_way_to_its_files_and_never_around_a_rule(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    (root / ".agents").mkdir()
    os.symlink("src", root / "code")
    os.symlink(".agents", root / "helpers")

    change = write_text(folder, "code/new.py", "x\n", reads)

    assert change.path == "src/new.py"
    with pytest.raises(PathProtectedError):
        write_text(folder, "helpers/skill.md", "x\n", reads)
    with pytest.raises(PathProtectedError):
        write_text(folder, "helpers/deep/skill.md", "x\n", reads)
    assert os.listdir(root / ".agents") == []


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


@pytest.mark.timeout(10)
@pytest.mark.parametrize("make", [_fifo, _socket, _device])
def test_a_special_file_is_refused_without_waiting(
    folder: ContainedFolder,
    root: Path,
    reads: ReadLedger,
    make: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(root)
    make(root / "special")

    with pytest.raises(PathRefusedError, match="pipe, socket or device"):
        write_text(folder, "special", "x\n", reads)
    with pytest.raises(WrongKindError):
        write_text(folder, "special/below", "x\n", reads)
    with pytest.raises(WrongKindError):
        make_folder(folder, "special")


def test_a_folder_is_no_file_and_a_file_no_folder(folder: ContainedFolder, root: Path, reads: ReadLedger) -> None:
    with pytest.raises(WrongKindError, match="is a folder, not a file"):
        write_text(folder, "src", "x\n", reads)
    with pytest.raises(WrongKindError, match="is no folder"):
        write_text(folder, "README.md/below.md", "x\n", reads)
    with pytest.raises(WrongKindError, match="is no folder"):
        make_folder(folder, "README.md")
    with pytest.raises(PathMissingError):
        edit_text(folder, "nothing.py", "a", "b", reads)


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * (LARGEST_FILE_BYTES + 1)])
def test_what_is_no_text_or_too_much_is_refused_before_anything_is_made(
    folder: ContainedFolder, root: Path, reads: ReadLedger, text: str
) -> None:
    before = contents(root)

    with pytest.raises(ContentRefusedError):
        write_text(folder, "new/file.txt", text, reads)
    read(folder, "README.md", reads)
    with pytest.raises(ContentRefusedError):
        edit_text(folder, "README.md", "two", text, reads)

    assert contents(root) == before


def test_an_edit_may_not_grow_a_file_past_what_can_be_read(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    (root / "big.txt").write_text("ab\n" * 50_000)
    read(folder, "big.txt", reads)

    with pytest.raises(ContentRefusedError, match="are the most"):
        edit_text(folder, "big.txt", "ab", "x" * 400, reads, everywhere=True)


def test_a_binary_file_is_never_changed(folder: ContainedFolder, root: Path, reads: ReadLedger) -> None:
    (root / "logo.png").write_bytes(b"\x89PNG\0\0main")
    reads.wrote("logo.png", hashlib.sha256(b"\x89PNG\0\0main").hexdigest(), whole=True)

    with pytest.raises(UnreadableFileError, match="binary"):
        write_text(folder, "logo.png", "x", reads)
    with pytest.raises(UnreadableFileError, match="binary"):
        edit_text(folder, "logo.png", "main", "x", reads)


def test_what_was_redacted_when_it_was_read_is_not_lost_by_writing_the_mark_back(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    config = "url: https://somebody:hunter22word@host.example/path\nlevel: 1\n"
    (root / "config.yaml").write_text(config)
    (root / "plain.md").write_text("The mark is written so.\n")
    (root / "known.txt").write_text("it is heron-of-the-test here\n")
    register_secret("heron-of-the-test", "STATION")
    read(folder, "config.yaml", reads)
    read(folder, "plain.md", reads)
    read(folder, "known.txt", reads)

    with pytest.raises(ContentRefusedError, match="secret that you are not shown"):
        write_text(folder, "known.txt", "it is [redacted:STATION] there\n", reads)
    with pytest.raises(ContentRefusedError, match="secret that you are not shown"):
        write_text(folder, "config.yaml", "url: https://somebody:[redacted]@host.example/path\nlevel: 2\n", reads)
    edit_text(folder, "config.yaml", "level: 1", "level: 2", reads)
    edit_text(folder, "plain.md", "so", "[redacted]", reads)

    assert (root / "config.yaml").read_text() == config.replace("1\n", "2\n")
    assert (root / "plain.md").read_text() == "The mark is written [redacted].\n"


def test_folders_end_where_a_search_would_not_go_any_more(folder: ContainedFolder, reads: ReadLedger) -> None:
    make_folder(folder, "/".join("d" * 40))

    with pytest.raises(PathRefusedError, match="too deep"):
        make_folder(folder, "/".join("e" * 41))
    with pytest.raises(PathRefusedError, match="too deep"):
        write_text(folder, "/".join("e" * 42), "x\n", reads)


def test_an_edit_that_does_not_fit_says_so_and_changes_nothing(
    folder: ContainedFolder, root: Path, reads: ReadLedger
) -> None:
    read(folder, "README.md", reads)

    for old in ("four", "e", ""):
        with pytest.raises(TextNotFoundError):
            edit_text(folder, "README.md", old, "x", reads)

    assert (root / "README.md").read_text() == "one\ntwo\nthree\n"
