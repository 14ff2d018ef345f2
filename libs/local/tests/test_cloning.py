"""What may be cloned, how, and what is left when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_kit.errors import ConflictError, InvalidInputError
from popagent_local.cloning import CloneFailedError, clone, is_address, source_of
from popagent_testing.repositories import Repository, can_be_served, served

needs_daemon = pytest.mark.skipif(not can_be_served(), reason="there is no git daemon")


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
    *("https://", "https:///p", "https://example.org", "https://-x/p", "ssh://-oProxyCommand=x/p"),
    *("-u:x", "--upload-pack=x:y", "git@-host:p", "host:-p", "host:", "a b:c", "host:p\n", "https://example.org:x/p"),
    *("host::p", "https://example.org/..", "https://example.org/.git", "host:..", "https://example.org/a%2fb%0a"),
    *("https://example.org/p q", "ssh://-x@example.org/p", "\x1b[2J:x", "https://[::1/p"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        source_of(text)


@pytest.mark.parametrize("folder", ["..", ".hidden", "a/b", "-x", "a\\b", "a b", "a\n", "", "x" * 101])
def test_a_folder_is_a_plain_name(folder: str) -> None:
    if folder:
        with pytest.raises(InvalidInputError, match="plain name"):
            source_of("https://example.org/p", folder)


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
    assert "credential helper" in refused.value.message


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    repository = Repository.made(tmp_path / "served" / "project.git")
    repository.commit("First", {"README.md": "one\n"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(repository.root), "inner")
    repository.commit("With a submodule", {})
    with served(tmp_path / "served") as address:
        yield address


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@needs_daemon
def test_a_clone_is_whole_and_ran_nothing(
    address: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "template" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\n: > {tmp_path}/sprung\n")
    hook.chmod(0o755)
    (tmp_path / "gitconfig").write_text(f"[init]\n\ttemplateDir = {tmp_path}/template\n[submodule]\n\trecurse = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    made = clone(source_of(f"{address}/project.git"), root, progress=False)

    assert made == root / "project"
    assert (made / "README.md").read_text() == "one\n"
    assert list((made / "inner").iterdir()) == []
    assert [path.name for path in root.iterdir()] == ["project"]
    assert not (tmp_path / "sprung").exists()
    assert not (tmp_path / "elsewhere").exists()


@needs_daemon
def test_a_clone_that_fails_leaves_nothing(address: str, root: Path) -> None:
    with pytest.raises(CloneFailedError):
        clone(source_of(f"{address}/missing.git"), root, progress=False)

    assert list(root.iterdir()) == []


@needs_daemon
def test_what_is_there_already_is_not_touched(address: str, root: Path) -> None:
    (root / "project").symlink_to("/nonexistent")

    with pytest.raises(ConflictError, match="--folder"):
        clone(source_of(f"{address}/project.git"), root, progress=False)

    assert [path.name for path in root.iterdir()] == ["project"]


def test_without_git_there_is_a_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_local.cloning.shutil.which", lambda name: None)

    with pytest.raises(ConflictError, match="not installed"):
        clone(source_of("https://example.org/p"), root, progress=False)
