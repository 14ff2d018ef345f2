"""Whom a text names, and what popagent writes of a task."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from popagent_chat.channels.mentions import mentioned
from popagent_chat.channels.saying import EXCERPT_BYTES, SHORTENED, output_of, prompt_of, trouble_of
from popagent_kit.clock import now
from popagent_proto.task_runner.tasks import TaskSummary


@dataclass(frozen=True)
class Agent:
    id: str
    name: str


AGENTS = (Agent("orchistrator", "Orchestrator"), Agent("researcher", "Researcher"), Agent("x1", "Build maintainer"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("@researcher look", ["researcher"]),
        ("please, @Orchestrator: look", ["orchistrator"]),
        ("(@build-maintainer) and @researcher, @RESEARCHER", ["x1", "researcher"]),
        ("@researcher-", ["researcher"]),
        ("me@researcher and @@researcher and /@researcher", []),
        ("`@researcher` and\n```\n@researcher\n```\nand ```\n@researcher", []),
        ("@researchers @nobody @", []),
    ],
)
def test_a_mention_is_an_id_or_a_name_outside_of_code_and_addresses(text: str, named: list[str]) -> None:
    assert mentioned(text, AGENTS) == named


def test_a_long_output_is_cut_at_8_kb_its_code_closed_and_leads_to_the_task() -> None:
    text = output_of(task(), "```python\n" + "ä" * 10_000)

    shown, shortened, link = text.split("\n\n")
    assert len(shown.encode()) <= EXCERPT_BYTES
    assert shown.endswith("ä\n```")
    assert shortened == SHORTENED
    assert link == r"[Task: Count \[all\] herons](/tasks/t1)"


def test_a_short_output_is_whole_and_a_blank_one_is_said() -> None:
    assert output_of(task(), "Seven.").startswith("Seven.\n\n[Task")
    assert output_of(task(), " \n").startswith("Done; it said nothing.\n\n[Task")


def test_trouble_is_told_as_plain_text() -> None:
    failed = task().model_copy(update={"last_error_class": "timeout", "last_error": "[x](http://y)\nlate"})

    assert trouble_of(failed, "failed").split("\n\n")[1] == r"timeout: \[x\]\(http://y\) late"


def test_the_post_stands_first_in_the_prompt() -> None:
    assert prompt_of("Count herons.", "#general", []).startswith("Count herons.\n\n(A person wrote this in the channel")


def task() -> TaskSummary:
    """A task that has ended."""
    return TaskSummary(
        id="t1",
        title="Count [all] herons",
        state="completed",
        source="user",
        workspace_id="w1",
        workflow=False,
        agent_id=None,
        model=None,
        session_id=None,
        schedule_id=None,
        remediates=None,
        priority=0,
        attempt_count=1,
        max_attempts=3,
        next_attempt_at=None,
        last_error_class=None,
        last_error=None,
        dead_lettered_at=None,
        interrupted_at=None,
        turn_id=None,
        trace_id=None,
        excerpt="",
        version=2,
        created_at=now(),
        started_at=now(),
        ended_at=now(),
    )
