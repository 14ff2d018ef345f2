"""What may be cloned, how, what is told of it, and how it ends when it fails."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from popagent_kit.errors import InvalidInputError
from popagent_sandbox import cloning
from popagent_sandbox.clone_address import is_address, source_of
from popagent_sandbox.cloning import CloneBounds, CloneFailedError, CloneSlowError, CloneTooLargeError, clone
from popagent_sandbox.git_run import GitMissingError
from popagent_testing.repositories import Repository, can_be_served, served

needs_daemon = pytest.mark.skipif(not can_be_served(), reason="there is no git daemon")
BOUNDS = CloneBounds(time_s=30, size_bytes=100 * 1024**2)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("https://example.org/group/project.git", "project"),
        ("https://example.org:8443/project/", "project"),
        ("ssh://git@example.org:22/group/project.git", "project"),
        ("git://example.org/project", "project"),
        ("git@example.org:group/project.git", "project"),
        ("example.org:project", "project"),
    ],
)
def test_an_address_suggests_the_folder(text: str, folder: str) -> None:
    assert is_address(text)
    assert source_of(text).folder == folder
    assert source_of(text, "other").folder == "other"


@pytest.mark.parametrize("path", ["project", "group/project", "./a:b", "/abs/olute", "/a:b", "a/b:c"])
def test_a_path_is_no_address(path: str) -> None:
    assert not is_address(path)


HOSTILE = [
    *("http://example.org/p", "file:///etc/p", "ext::sh -c date", "ext::sh", "ftp://example.org/p", "rsync://h/p"),
    *("https://", "https:///p", "https://example.org", "https://-x/p", "ssh://-oProxyCommand=x/p", "/etc/passwd"),
    *("-u:x", "--upload-pack=x:y", "git@-host:p", "host:-p", "host:", "a b:c", "host:p\n", "https://example.org:x/p"),
    *("host::p", "https://example.org/..", "https://example.org/.git", "host:..", "https://example.org/a%2fb%0a"),
    *("https://example.org/p q", "ssh://-x@example.org/p", "\x1b[2J:x", "https://[::1/p", "data:text/plain,x"),
    *("https://169.254.169.254/p", "git://2852039166/p", "ssh://git@[::ffff:a9fe:a9fe]/p", "git@0xA9FEA9FE:p"),
    *("https://example.org/\u202ep", "HTTP://example.org/p", "fd::17/foo", "https://example.org/" + "p" * 2_000),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        source_of(text)

    assert refused.value.field in ("url", "directory")


@pytest.mark.parametrize("folder", ["..", ".hidden", "a/b", "-x", "a\\b", "a b", "a\n", "", "x" * 101, "a\0b"])
def test_a_folder_is_a_plain_name(folder: str) -> None:
    with pytest.raises(InvalidInputError, match="plain name") as refused:
        source_of("https://example.org/p", folder)

    assert refused.value.field == "directory"


@pytest.mark.parametrize(
    "text",
    [
        "https://ada:hunter22@example.org/p.git",
        "https://hunter22@example.org/p.git",
        "ssh://git:hunter22@example.org/p.git",
        "git://hunter22@example.org/p.git",
        "ada:hunter22@example.org/p.git",
        "ada:hunter22@example.org:p.git",
        "https://example.org/p.git?token=hunter22",
        "https://example.org/p.git#hunter22",
    ],
)
def test_an_address_with_a_credential_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        source_of(text)

    assert "hunter22" not in refused.value.message
    assert (refused.value.field, "credential helper" in refused.value.message) == ("url", True)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    repository = Repository.made(tmp_path / "served" / "project.git")
    repository.commit("First", {"README.md": "one\n", **{f"src/{n}.txt": f"{n}\n" * 500 for n in range(200)}})
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(repository.root), "inner")
    repository.commit("With a submodule", {})
    with served(tmp_path / "served") as address:
        yield address


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root" / "project"


async def nothing(share: float, note: str) -> None:
    pass


@needs_daemon
async def test_a_clone_is_whole_tells_how_far_it_is_and_ran_nothing(
    address: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "template" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\n: > {tmp_path}/sprung\n")
    hook.chmod(0o755)
    (tmp_path / "gitconfig").write_text(
        f"[init]\n\ttemplateDir = {tmp_path}/template\n[submodule]\n\trecurse = true\n"
        f"[core]\n\thooksPath = {hook.parent}\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    told: list[tuple[float, str]] = []

    async def note(share: float, text: str) -> None:
        told.append((share, text))

    await clone(f"{address}/project.git", target, BOUNDS, note)

    assert (target / "README.md").read_text() == "one\n"
    assert list((target / "inner").iterdir()) == []
    assert not (tmp_path / "sprung").exists()
    assert not (tmp_path / "elsewhere").exists()
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], max(shares) > 0.7) == (0.0, True)
    assert any(text.startswith("Receiving: 100 %") for _, text in told)


@needs_daemon
async def test_git_is_given_the_accounts_surroundings_and_no_secret_of_ours(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\nenv > {seen}\nexit 1\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    for name in ("POPAGENT_SECRET_KEY", "DATABASE_URL", "NATS_URL", "POPAGENT_CHAT_DATABASE_URL", "AWS_SECRET_KEY"):
        monkeypatch.setenv(name, "hunter22")

    with pytest.raises(CloneFailedError):
        await clone("ssh://git@example.org/p", target, BOUNDS, nothing)

    told = seen.read_text()
    assert "SSH_AUTH_SOCK=/run/agent" in told
    assert "hunter22" not in told


@needs_daemon
async def test_a_repository_that_is_not_there_is_told_in_a_sentence(address: str, target: Path) -> None:
    with pytest.raises(CloneFailedError, match="no repository at this address") as failed:
        await clone(f"{address}/missing.git", target, BOUNDS, nothing)

    assert str(target.parent) not in failed.value.message


async def test_a_server_that_is_not_there_is_told(target: Path) -> None:
    with pytest.raises(CloneFailedError, match="does not answer"):
        await clone("git://127.0.0.1:1/p.git", target, BOUNDS, nothing)


@needs_daemon
async def test_a_repository_larger_than_allowed_is_refused(
    address: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloning, "LOOK_EVERY_S", 0.01)
    many = CloneBounds(30, 500 * 1024)

    with pytest.raises(CloneTooLargeError, match="POPAGENT_CLONE_MIB"):
        await clone(f"{address}/project.git", target, many, nothing)


@needs_daemon
async def test_one_file_larger_than_allowed_is_refused_by_the_kernel(tmp_path: Path, target: Path) -> None:
    repository = Repository.made(tmp_path / "served" / "bomb.git")
    repository.commit("First", {"zeros": b"\0" * 20_000_000})
    with served(tmp_path / "served") as address, pytest.raises(CloneFailedError) as failed:
        await clone(f"{address}/bomb.git", target, CloneBounds(30, 10_000_000), nothing)

    assert "POPAGENT_CLONE_MIB" in failed.value.message


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"git://127.0.0.1:{server.getsockname()[1]}/p.git"


def gits() -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if "git" in each.name()]


async def test_a_server_that_says_nothing_is_given_up_after_the_time_and_git_is_gone(target: Path) -> None:
    async with silent_server() as url:
        with pytest.raises(CloneSlowError, match="POPAGENT_CLONE_MINUTES"):
            await clone(url, target, CloneBounds(0.5, 10**9), nothing)

    assert gits() == []


async def test_cancelling_ends_git(target: Path) -> None:
    began = asyncio.Event()

    async def note(share: float, text: str) -> None:
        began.set()

    async with silent_server() as url:
        task = asyncio.create_task(clone(url, target, BOUNDS, note))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert gits() == []


async def test_without_git_there_is_a_sentence(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(GitMissingError, match="not installed"):
        await clone("https://example.org/p", target, BOUNDS, nothing)


def test_what_a_folder_takes_counts_small_files_as_a_disk_does(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "large").write_bytes(b"x" * 10_000)
    (tmp_path / "a" / "small").write_bytes(b"x")
    os.symlink("/", tmp_path / "a" / "link")

    assert cloning.size_of(tmp_path) == 10_000 + 4 * 4_096
