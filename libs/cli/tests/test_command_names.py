"""How a command is found: by what it is called, and by the help of the group that it is in."""

from __future__ import annotations

import pytest

from .conftest import Run


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("tasks",), "task-create, task-list"),
        (("skills", "list"), "skill-list, skill-show"),
        (("docs",), "docs-list, docs-search"),
        (("schedules",), "schedule-list"),
        (("channels",), "channel-list"),
        (("workspaces", "list"), "There are: workspace."),
        (("agent",), "agents, agent-health"),
        (("task-lst",), "task-list"),
    ],
)
def test_what_is_no_command_is_answered_with_those_like_it(run: Run, words: tuple[str, ...], some: str) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert f"No such command '{words[0]}'" in result.stderr
    assert some in result.stderr
    assert "There are" not in run("qqqq").stderr


@pytest.mark.parametrize("group", ["workspace", "hooks", "sessions", "agents", "models", "traces", "model"])
def test_the_help_of_a_group_says_whole_sentences(run: Run, group: str) -> None:
    text = run(group, "--help").stdout

    assert "..." not in text.partition("Commands:")[2]
    assert "  list  " in text
