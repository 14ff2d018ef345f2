"""What a model is told of a repository's state and history."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from libs.tools.tests.runs import call, run_in
from popagent_agent.run_context import RunContext
from popagent_agent.tokens import estimate_tokens
from popagent_sandbox.contained import ContainedFolder
from popagent_testing.repositories import Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

NAMES = ("gitStatus", "gitDiff", "gitLog", "gitShow")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.made(tmp_path / "repo")
    repository.commit("First commit", {"README.md": "# Demo\n", "src/main.py": "one\ntwo\nthree\n"})
    repository.commit("Say four\n\nBecause three was not enough.", {"src/main.py": "one\ntwo\nthree\nfour\n"})
    return repository


@pytest.fixture
def run(repository: Repository) -> Iterator[RunContext]:
    with ContainedFolder(repository.root) as folder:
        yield run_in(folder, "read-only")


async def test_the_status_of_a_clean_checkout_and_of_a_changed_one(run: RunContext, repository: Repository) -> None:
    repository.git("branch", "feature/x")

    clean = await call(run, "gitStatus")
    repository.write({"src/main.py": "1\n", "new.py": "x\n", ".env": "TOKEN=1\n"})
    changed = await call(run, "gitStatus")

    assert clean.text.splitlines() == [
        "On branch main.",
        "Other branches: feature/x.",
        "Nothing is changed since the last commit.",
    ]
    assert changed.text.splitlines()[2:] == [
        "Changed since the last commit (2):",
        "modified: src/main.py",
        "new: new.py",
        "(1 hidden from agents)",
    ]


async def test_the_difference_names_the_files_and_then_shows_the_lines(run: RunContext, repository: Repository) -> None:
    repository.write({"src/main.py": "one\n2\nthree\nfour\n", "new.py": "x = 1\n"})

    lines = (await call(run, "gitDiff")).text.splitlines()

    assert lines[:2] == ["modified: src/main.py +1 -1", "new: new.py"]
    assert {"-two", "+2", "+x = 1"} <= set(lines)
    assert not any(line.startswith("index ") for line in lines)
    assert (await call(run, "gitDiff", path="README.md")).text == "There is no difference."
    assert "+four" in (await call(run, "gitDiff", base="HEAD~1", target="HEAD")).text


async def test_the_log_is_one_line_a_commit(run: RunContext, repository: Repository) -> None:
    lines = (await call(run, "gitLog")).text.splitlines()
    short = repository.git("rev-parse", "--short", "HEAD").strip()

    assert lines[0] == f"{short} 2026-01-02 Ada: Say four"
    assert [line.rpartition(": ")[2] for line in lines] == ["Say four", "First commit"]
    assert (await call(run, "gitLog", path="nowhere.py")).text == "No commit changed nowhere.py."
    assert len((await call(run, "gitLog", limit=1)).text.splitlines()) == 1


async def test_a_commit_is_shown_and_a_file_as_it_was(run: RunContext) -> None:
    shown = (await call(run, "gitShow")).text
    before = await call(run, "gitShow", commit="HEAD~1:src/main.py")

    assert "Because three was not enough." in shown
    assert "modified: src/main.py +1 -0" in shown
    assert "+four" in shown.splitlines()
    assert (before.text, before.error) == ("one\ntwo\nthree", False)


async def test_outputs_stay_within_what_a_small_model_reads(run: RunContext, repository: Repository) -> None:
    many = {f"src/module_{number}.py": "a line that is quite long, as lines go\n" * 40 for number in range(120)}
    repository.commit("Many files\n\n" + "A reason. " * 2_000, many)
    for number in range(30):
        repository.commit(f"Commit {number} with a title of some length, as they mostly are", {})
    repository.write(dict.fromkeys(many, "changed\n" * 40))

    for name in NAMES:
        arguments = {"commit": "HEAD~30"} if name == "gitShow" else {}
        outcome = await call(run, name, **arguments)
        assert not outcome.error
        assert estimate_tokens(outcome.text) <= 650, name
    assert "give the path of one file" in (await call(run, "gitDiff")).text


@pytest.mark.parametrize("name", NAMES)
async def test_what_cannot_be_answered_is_a_sentence(name: str, run: RunContext, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert run.workspace is not None

    nowhere = await call(replace(run, workspace=None), name)
    with ContainedFolder(tmp_path / "plain") as folder:
        plain = await call(replace(run, workspace=replace(run.workspace, folder=folder)), name)

    assert (nowhere.error, plain.error) == (True, True)
    assert nowhere.text.startswith("There is no workspace")
    assert plain.text.startswith("This workspace is a plain folder and no Git repository")


async def test_a_hostile_argument_is_refused_in_a_sentence(run: RunContext) -> None:
    for name, arguments in (
        ("gitShow", {"commit": "--output=/tmp/x"}),
        ("gitShow", {"commit": "HEAD:.env"}),
        ("gitShow", {"commit": "HEAD:../../etc/passwd"}),
        ("gitLog", {"branch": "--upload-pack=x"}),
        ("gitLog", {"path": "../.."}),
        ("gitDiff", {"base": "-x"}),
        ("gitDiff", {"path": "/etc/passwd"}),
    ):
        outcome = await call(run, name, **arguments)
        assert outcome.error, arguments
        assert "failed on our side" not in outcome.text
