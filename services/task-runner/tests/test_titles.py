from __future__ import annotations

import pytest

from popagent_proto.task_runner.tasks import TITLE_CHARACTERS
from popagent_task_runner.tasks.prompts import title_of


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Count the herons.\n\n(Answer in Markdown.)", "Count the herons."),
        ("\n \u200b\t\r\n  Count   the\vherons  \nall", "Count the"),
        ("a\x1b[2Jb", "a [2Jb"),
        ("\u200b \n", "…"),
    ],
)
def test_a_task_is_called_what_the_first_line_of_its_prompt_says(prompt: str, title: str) -> None:
    assert title_of(prompt) == title
    assert len(title_of("word " * 1_000)) <= TITLE_CHARACTERS
