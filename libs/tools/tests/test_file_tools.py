from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from libs.tools.tests.runs import call, run_in
from popagent_agent.run_context import RunContext
from popagent_agent.tokens import estimate_tokens, schema_tokens
from popagent_sandbox.contained import ContainedFolder
from popagent_tools.catalogue import CATALOGUE, toolset_for


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("def main():\n    print('hello')\n")
    (tmp_path / "README.md").write_text("# Demo\n\nIt says hello.\n")
    (tmp_path / ".env").write_text("TOKEN=1")
    return tmp_path


@pytest.fixture
def run(root: Path) -> Iterator[RunContext]:
    with ContainedFolder(root) as folder:
        yield run_in(folder, "read-only")


async def test_list_shows_two_levels_of_a_small_tree(run: RunContext) -> None:
    outcome = await call(run, "list")

    assert outcome.text.splitlines() == ["src/", "README.md", "src/main.py", "(1 hidden from agents)"]


async def test_read_gives_a_short_file_as_it_is(run: RunContext) -> None:
    outcome = await call(run, "read", path="README.md")

    assert outcome.text == "# Demo\n\nIt says hello."


async def test_read_tells_where_to_read_on_and_goes_on_there(run: RunContext, root: Path) -> None:
    (root / "long.txt").write_text("".join(f"this is line {number}\n" for number in range(1, 501)))

    first = (await call(run, "read", path="long.txt")).text
    line = int(first.splitlines()[-1].rpartition("line=")[2].removesuffix("]"))
    second = (await call(run, "read", path="long.txt", line=line)).text

    assert first.splitlines()[0].startswith("[long.txt, lines 1-")
    assert second.splitlines()[1] == f"this is line {line}"
    assert estimate_tokens(first) <= 600
    assert (await call(run, "read", path="long.txt", line=900)).text == "long.txt has only 500 lines."


async def test_read_names_what_is_spelled_alike_when_a_file_is_missing(run: RunContext) -> None:
    assert "There is: README.md." in (await call(run, "read", path="Readme.txt")).text
    assert "There is: src/main.py." in (await call(run, "read", path="src/mian.py")).text
    assert "Use list or grep" in (await call(run, "read", path="nowhere/at/all.txt")).text


async def test_grep_groups_its_lines_by_file(run: RunContext) -> None:
    outcome = await call(run, "grep", pattern="hello")

    assert outcome.text.splitlines() == ["README.md", "  3: It says hello.", "src/main.py", "  2: print('hello')"]


async def test_grep_says_when_there_is_nothing_and_when_the_pattern_was_no_expression(run: RunContext) -> None:
    assert (await call(run, "grep", pattern="absent")).text == "No line matches 'absent' in 2 files."
    assert "searched as plain text" in (await call(run, "grep", pattern="print(")).text


async def test_stat_tells_what_a_path_is(run: RunContext) -> None:
    assert (await call(run, "stat", path="README.md")).text.startswith("README.md: file, 23 bytes, changed ")
    assert (await call(run, "stat", path="src")).text.startswith("src: folder, changed ")


@pytest.mark.parametrize("name", ["read", "list", "grep", "stat"])
@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".env", ".git/config", "a\0b", "/proc/self/environ"])
async def test_every_tool_refuses_a_path_that_leaves_or_is_hidden(run: RunContext, name: str, path: str) -> None:
    arguments = {"path": path} | ({"pattern": "x"} if name == "grep" else {})

    outcome = await call(run, name, **arguments)

    assert outcome.error
    assert "root:" not in outcome.text


async def test_outputs_stay_within_what_a_small_model_reads(run: RunContext, root: Path) -> None:
    for number in range(600):
        (root / "src" / f"module_{number}.py").write_text("needle in a haystack, which is quite long\n" * 30)

    for outcome in (
        await call(run, "list", path="src"),
        await call(run, "grep", pattern="needle"),
        await call(run, "read", path="src/module_1.py"),
    ):
        assert not outcome.error
        assert estimate_tokens(outcome.text) <= 650


async def test_without_a_workspace_the_tools_say_so(run: RunContext) -> None:
    outcome = await call(replace(run, workspace=None), "list")

    assert (outcome.text, outcome.error) == (
        "There is no workspace in this conversation, so there are no files to look at.",
        True,
    )


def test_the_catalogue_is_small_enough_for_a_small_model() -> None:
    first = toolset_for(list(CATALOGUE)[:4])
    every = toolset_for(list(CATALOGUE))

    assert schema_tokens(first.schemas()) < 400
    # About a hundred tokens a tool; no agent is given them all.
    assert schema_tokens(every.schemas()) < 110 * len(every.names)


def test_a_profile_may_name_tools_that_do_not_exist(caplog: pytest.LogCaptureFixture) -> None:
    tools = toolset_for(["grep", "teleport"])

    assert tools.names == ("grep",)
    assert caplog.records[0].__dict__["tools"] == "teleport"
