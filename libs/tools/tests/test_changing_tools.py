from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from libs.tools.tests.runs import call, run_in
from popagent_agent.run_context import AgentProfile, RunContext, WorkspaceAccess
from popagent_agent.tokens import estimate_tokens
from popagent_sandbox.contained import ContainedFolder
from popagent_tools.catalogue import CATALOGUE

CHANGES: dict[str, dict[str, object]] = {
    "edit": {"path": "README.md", "old_string": "Demo", "new_string": "Other"},
    "write": {"path": "new.txt", "content": "x\n"},
    "delete": {"path": "README.md"},
    "move": {"path": "README.md", "new_path": "x.md"},
    "mkdir": {"path": "new"},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("def main():\n    print('hello')\n")
    (tmp_path / "README.md").write_text("# Demo\n\nIt says hello.\n")
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    return tmp_path


@pytest.fixture
def run(root: Path) -> Iterator[RunContext]:
    with ContainedFolder(root) as folder:
        yield run_in(folder, "read-write", "read-write")


async def test_an_edit_shows_what_it_changed(run: RunContext, root: Path) -> None:
    await call(run, "read", path="src/main.py")

    outcome = await call(run, "edit", path="src/main.py", old_string="'hello'", new_string="'bye'")

    assert outcome.text.splitlines() == [
        "Edited src/main.py: lines +1 -1.",
        "@@ -1,2 +1,2 @@",
        " def main():",
        "-    print('hello')",
        "+    print('bye')",
    ]
    assert (root / "src" / "main.py").read_text() == "def main():\n    print('bye')\n"


async def test_a_model_is_led_from_an_edit_without_a_read_to_one_that_works(run: RunContext, root: Path) -> None:
    edit = {"path": "README.md", "old_string": "says hello", "new_string": "says bye"}

    first = await call(run, "edit", **edit)
    await call(run, "read", path="README.md")
    misspelled = await call(run, "edit", **{**edit, "old_string": "It say hello"})
    missing = await call(run, "edit", **{**edit, "path": "README.txt"})
    last = await call(run, "edit", **edit)

    assert (first.error, first.text) == (
        True,
        "Read 'README.md' first; a file that was not read cannot be changed.",
    )
    assert "The nearest is, at line 3:\nIt says hello.\n" in misspelled.text
    assert "There is: README.md." in missing.text
    assert not last.error
    assert "It says bye." in (root / "README.md").read_text()


async def test_a_write_makes_a_file_and_replaces_one_that_was_read(run: RunContext, root: Path) -> None:
    made = await call(run, "write", path="docs/a.md", content="one\ntwo")
    again = await call(run, "write", path="docs/a.md", content="one\nthree\n")
    same = await call(run, "write", path="docs/a.md", content="one\nthree\n")
    unread = await call(run, "write", path="README.md", content="gone\n")

    assert made.text == "Made docs/a.md (2 lines)."
    assert again.text.startswith("Wrote docs/a.md: lines +1 -1.\n@@ ")
    assert same.text == "docs/a.md holds this text already. Nothing was changed."
    assert unread.error


async def test_files_and_folders_are_made_moved_and_deleted(run: RunContext, root: Path) -> None:
    texts = [
        (await call(run, "mkdir", path="a/b")).text,
        (await call(run, "mkdir", path="a/b")).text,
        (await call(run, "move", path="src/main.py", new_path="a/b/app.py")).text,
        (await call(run, "delete", path="src")).text,
        (await call(run, "delete", path="a", recursive=True)).text,
        (await call(run, "delete", path="README.md")).text,
    ]

    assert texts == [
        "Made the folder a/b.",
        "There is a folder a/b already.",
        "Moved src/main.py to a/b/app.py.",
        "Deleted the folder src.",
        "Deleted the folder a and 2 files and folders in it.",
        "Deleted README.md.",
    ]
    assert [path.name for path in root.iterdir()] == ["AGENTS.md"]


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize(("access", "allowed"), [("read-only", "read-only"), ("read-only", "read-write")])
async def test_a_read_only_view_refuses_every_change(
    root: Path, name: str, access: WorkspaceAccess, allowed: WorkspaceAccess
) -> None:
    with ContainedFolder(root) as folder:
        run = run_in(folder, access, allowed)
        read = await call(run, "read", path="README.md")
        outcome = await call(run, name, **CHANGES[name])

    assert not read.error
    assert outcome.error
    assert "read the workspace and change nothing" in outcome.text
    assert sorted(path.name for path in root.iterdir()) == ["AGENTS.md", "README.md", "src"]
    assert "Demo" in (root / "README.md").read_text()


@pytest.mark.parametrize("name", sorted(CHANGES))
async def test_without_a_workspace_there_is_nothing_to_change(run: RunContext, name: str) -> None:
    outcome = await call(replace(run, workspace=None), name, **CHANGES[name])

    assert outcome.error
    assert "There is no workspace" in outcome.text


@pytest.mark.parametrize("name", sorted(CHANGES))
async def test_every_change_is_written_down_before_it_is_made(name: str) -> None:
    assert CATALOGUE[name].access == "write"


async def test_a_delegate_begins_without_what_its_supervisor_has_read(run: RunContext, root: Path) -> None:
    await call(run, "read", path="README.md")
    delegate = replace(run, agent=AgentProfile("other", "Other", "Help."))

    assert (await call(delegate, "edit", **CHANGES["edit"])).error
    assert not (await call(run, "edit", **CHANGES["edit"])).error


async def test_edits_of_one_step_do_not_get_into_each_others_way(run: RunContext, root: Path) -> None:
    (root / "list.txt").write_text("".join(f"item {number};\n" for number in range(20)))
    await call(run, "read", path="list.txt")

    outcomes = await asyncio.gather(
        *(
            call(run, "edit", path="list.txt", old_string=f"item {number};", new_string=f"thing {number};")
            for number in range(20)
        )
    )

    assert not any(outcome.error for outcome in outcomes)
    assert (root / "list.txt").read_text() == "".join(f"thing {number};\n" for number in range(20))


async def test_a_call_that_is_ended_changes_nothing_afterwards(run: RunContext, root: Path) -> None:
    await call(run, "read", path="README.md")
    with (root / "README.md").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = asyncio.create_task(call(run, "edit", **CHANGES["edit"]))
        _, pending = await asyncio.wait([waiting], timeout=0.2)
        waiting.cancel()
        await asyncio.wait([waiting])
    assert pending
    assert waiting.cancelled()

    again = await call(run, "edit", path="README.md", old_string="Demo", new_string="Second")

    assert not again.error
    assert (root / "README.md").read_text().startswith("# Second\n")


async def test_an_answer_stays_within_what_a_small_model_reads(run: RunContext, root: Path) -> None:
    (root / "long.txt").write_text("a short line of text\n" * 1_500)
    for line in range(1, 1_501, 10):
        await call(run, "read", path="long.txt", line=line)

    outcome = await call(run, "edit", path="long.txt", old_string="short", new_string="long", replace_all=True)

    assert "lines +1500 -1500" in outcome.text
    assert estimate_tokens(outcome.text) <= 650


async def test_a_protected_file_is_read_and_the_refusal_says_what_to_do(run: RunContext) -> None:
    read = await call(run, "read", path="AGENTS.md")
    edit = await call(run, "edit", path="AGENTS.md", old_string="kind", new_string="rude")

    assert read.text == "Be kind."
    assert edit.error
    assert edit.text.startswith("'AGENTS.md' is protected: it tells agents how to work here. You may read it.")
