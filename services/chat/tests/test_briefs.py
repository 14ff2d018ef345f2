"""What is remembered of a workspace's checkout, and until when."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_kit.ids import new_id
from popagent_runs.workspaces import briefs
from popagent_runs.workspaces.briefs import Briefs
from popagent_sandbox.brief import RepoBrief, repo_brief
from popagent_sandbox.contained import ContainedFolder
from popagent_testing.model_server import ModelServer
from popagent_testing.repositories import Repository
from services.chat.tests.running import Chat, Door

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every folder for which it was really found out."""
    folders: list[Path] = []

    def counted(folder: ContainedFolder, *, changes: bool = True) -> RepoBrief:
        folders.append(folder.root)
        return repo_brief(folder, changes=changes)

    monkeypatch.setattr(briefs, "repo_brief", counted)
    return folders


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.made(tmp_path / "repo")
    repository.commit("First", {"a.py": "1\n"})
    return repository


@pytest.fixture
def folder(repository: Repository) -> Iterator[ContainedFolder]:
    with ContainedFolder(repository.root) as folder:
        yield folder


async def test_a_brief_is_found_out_once_until_the_checkout_moves(
    asked: list[Path], repository: Repository, folder: ContainedFolder
) -> None:
    remembered = Briefs()

    at_once = await asyncio.gather(*(remembered.of(folder) for _ in range(5)))
    repository.write({"a.py": "2\n"})
    edited = await remembered.of(folder)
    repository.commit("Second", {})
    moved = await remembered.of(folder)

    assert {brief.subjects for brief in (*at_once, edited)} == {("First",)}
    assert moved.subjects == ("Second", "First")
    assert len(asked) == 2


async def test_what_could_not_be_told_is_asked_again_later(
    asked: list[Path], repository: Repository, folder: ContainedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = Briefs()
    (repository.root / ".git" / "HEAD").write_text("rubbish")

    first = [await remembered.of(folder) for _ in range(3)]
    monkeypatch.setattr(briefs, "PROBLEM_REMEMBERED_S", -1.0)
    (repository.root / ".git" / "HEAD").write_text("rubbish again")
    later = [await remembered.of(folder) for _ in range(2)]

    assert all(brief.problem for brief in (*first, *later))
    assert len(asked) == 3


async def test_only_so_many_are_remembered(asked: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(briefs, "MOST_REMEMBERED", 2)
    remembered = Briefs()
    for name in ("one", "two", "three", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        with ContainedFolder(tmp_path / name) as folder:
            await remembered.of(folder)

    assert [path.name for path in asked] == ["one", "two", "three", "one"]


async def test_a_turn_in_a_repository_is_told_of_it_and_the_next_one_of_what_was_committed_since(
    chat: Chat, door: Door, model: ModelServer, root: Path
) -> None:
    shutil.rmtree(root / "default")
    repository = Repository.made(root / "default")
    repository.commit("First of all", {"pyproject.toml": "[tool.pytest.ini_options]\n"})
    session = new_id()

    await door.say("hello", session)
    repository.commit("And then", {})
    await door.say("hello again", session)

    systems = [request.body["messages"][0]["content"] for request in model.requests]
    assert 'Last commits: "First of all"' in systems[0]
    assert 'Last commits: "And then"; "First of all"' in systems[1]
    assert all("Python (pyproject.toml), tests: pytest" in system for system in systems)


async def test_a_turn_in_a_broken_repository_is_answered_all_the_same(
    chat: Chat, door: Door, model: ModelServer, root: Path
) -> None:
    (root / "default" / ".git").mkdir()
    os.mkfifo(root / "default" / ".git" / "HEAD")

    turn = await door.say("hello", new_id())

    assert turn.text == "hello"
    assert "This repository" in model.requests[0].body["messages"][0]["content"]
