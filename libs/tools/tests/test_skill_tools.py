"""What a model gets when it opens, reads and searches the skills of its agent."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from popagent_agent.run_context import AgentProfile, RunContext
from popagent_agent.skills import SKILL_TOOLS, Skill
from popagent_agent.toolset import ToolOutcome
from popagent_kit import json
from popagent_models.profile import ModelProfile, profile_for
from popagent_models.routing import Route
from popagent_testing.runtime_settings import agent_runtime
from popagent_tools.catalogue import CATALOGUE, tools_of
from popagent_tools.ranking import ranked

NOTES = Skill(
    "release-notes",
    "Write notes for a release.",
    "1. Read the log.\n2. Group by kind; references/kinds.md has the kinds.",
    {"kinds.md": "feature\nrepair\n", "style/tone.md": "\n".join(f"Rule {n}: short." for n in range(1, 31))},
)
TRIAGE = Skill("triage", "Sort reports of defects.", "Ask for what is missing to reproduce the defect.")
SMALL = profile_for("qwen2.5-coder-1.5b-instruct")
LARGE = profile_for("gpt-5")


@pytest.fixture
def run() -> RunContext:
    return of_model(SMALL, NOTES, TRIAGE)


def of_model(model: ModelProfile, *skills: Skill) -> RunContext:
    agent = AgentProfile("writer", "Writer", "Write.", ("read",), "none", model=model, skills=skills)
    return RunContext(
        turn_id="t",
        session_id="s",
        trace_id=None,
        settings=agent_runtime(),
        agent=agent,
        route=Route("m", "default", "It is the default."),
        model=model,
    )


async def call(run: RunContext, called: str, /, **arguments: object) -> ToolOutcome:
    # All three, whatever the model is offered.
    every = tools_of(replace(run.agent, model=LARGE))
    return await every.call(called, json.dumps(arguments).decode(), run)


async def text_of(run: RunContext, called: str, /, **arguments: object) -> str:
    outcome = await call(run, called, **arguments)
    assert not outcome.error, outcome.text
    return outcome.text


async def test_an_opened_skill_is_its_procedure_and_the_paths_of_its_references(run: RunContext) -> None:
    assert await text_of(run, "skill", name="release-notes") == (
        "1. Read the log.\n2. Group by kind; references/kinds.md has the kinds.\n\n"
        "References, to be opened with skill_read when you need them:\n"
        "- references/kinds.md\n- references/style/tone.md"
    )
    assert await text_of(run, "skill", name=" triage ") == TRIAGE.instructions


async def test_a_name_that_is_unknown_is_answered_with_those_there_are(run: RunContext) -> None:
    told = [
        await text_of(run, "skill", name="../release"),
        await text_of(run, "skill_read", skillName="release", path="kinds.md"),
        await text_of(run, "skill_search", query="log", skillNames=["triage", "release"]),
    ]

    assert all(text.endswith("Your skills: release-notes, triage.") for text in told)
    assert "“../release”" in told[0]


@pytest.mark.parametrize("path", ["references/kinds.md", "kinds.md", "./references/kinds.md", " kinds.md"])
async def test_a_reference_is_read_whole(run: RunContext, path: str) -> None:
    assert await text_of(run, "skill_read", skillName="release-notes", path=path) == "feature\nrepair"


async def test_a_reference_is_read_by_lines(run: RunContext) -> None:
    async def lines(**given: int) -> str:
        return await text_of(run, "skill_read", skillName="release-notes", path="style/tone.md", **given)

    assert await lines(startLine=2, endLine=3) == (
        "references/style/tone.md (lines 2-3 of 30)\nRule 2: short.\nRule 3: short."
    )
    assert await lines(startLine=29, endLine=99) == (
        "references/style/tone.md (lines 29-30 of 30)\nRule 29: short.\nRule 30: short."
    )
    assert await lines(startLine=-4, endLine=1) == "references/style/tone.md (lines 1-1 of 30)\nRule 1: short."
    assert await lines(startLine=31) == "references/style/tone.md has only 30 lines."
    assert "comes before" in await lines(startLine=5, endLine=4)
    main = await text_of(run, "skill_read", skillName="release-notes", path="SKILL.md", startLine=2)
    assert main.startswith("SKILL.md (lines 2-2 of 2)\n2. Group")


@pytest.mark.parametrize("path", ["../../etc/passwd", "references/../kinds.md", "/kinds.md", "", "Kinds.md"])
async def test_a_path_that_is_none_of_the_skill_is_answered_with_those_there_are(run: RunContext, path: str) -> None:
    text = await text_of(run, "skill_read", skillName="release-notes", path=path)

    assert text.startswith("release-notes has no text “")
    assert "- references/kinds.md\n- references/style/tone.md" in text
    assert "SKILL.md is all of it" in await text_of(run, "skill_read", skillName="triage", path=path or "x")


async def test_what_is_too_long_for_the_model_is_read_on_line_by_line() -> None:
    numbered = [f"Line {n} says something of its own." for n in range(1, 400)]
    long = Skill(
        "long", "Long.", "\n".join(numbered), {f"{n:03}-{'x' * 150}.md": "\n".join(numbered) for n in range(50)}
    )
    run = of_model(SMALL, long)

    opened = await text_of(run, "skill", name="long")
    seen: list[str] = []
    start = 1
    while start <= len(numbered):
        text = await text_of(run, "skill_read", skillName="long", path="SKILL.md", startLine=start)
        assert len(text) < SMALL.tool_output_tokens * 3.5
        seen += [line for line in text.splitlines() if line.startswith("Line ")]
        start = len(seen) + 1

    assert len(opened) < SMALL.tool_output_tokens * 3.5
    assert '[to read on: skill_read with path "SKILL.md" and startLine' in opened
    assert "more; skill_search finds what stands in them" in opened
    assert seen == numbered


async def test_a_line_that_is_longer_than_all_there_is_room_for_is_cut() -> None:
    run = of_model(SMALL, Skill("long", "Long.", "x" * 50_000 + "\nend"))

    text = await text_of(run, "skill", name="long")

    assert "[the line goes on for" in text
    assert len(text) < SMALL.tool_output_tokens * 3.5
    assert (await text_of(run, "skill_read", skillName="long", path="SKILL.md", startLine=2)).endswith("\nend")


async def test_a_search_tells_skill_place_and_the_beginning_of_the_passage(run: RunContext) -> None:
    found = await text_of(run, "skill_search", query="rule 23")
    purposes = await text_of(run, "skill_search", query="sort defects", topK=1)
    narrowed = await text_of(run, "skill_search", query="the", skillNames=["triage"])

    assert found.startswith("[release-notes] references/style/tone.md (lines 1-24) (score: ")
    assert "\n  Rule 1: short. Rule 2: short." in found
    assert purposes.startswith("[triage] SKILL.md (lines 1-1)")
    assert "[release-notes]" not in narrowed
    assert await text_of(run, "skill_search", query="!?") == (
        "There is no word in the query. Your skills: release-notes, triage."
    )
    assert "No skill speaks of “zebra”" in await text_of(run, "skill_search", query="zebra")


async def test_a_search_is_bounded_and_takes_time_in_proportion() -> None:
    words = "alpha beta gamma delta epsilon " * 3_300
    run = of_model(SMALL, *(Skill(f"s{n}", "Greek.", words, {"a.md": words[:99_000]}) for n in range(13)))
    began = time.monotonic()

    text = await text_of(run, "skill_search", query="alpha " * 50_000 + "omega", topK=1_000)

    assert time.monotonic() - began < 10
    assert 1 <= text.count("(score: ") <= 20
    assert len(text) < SMALL.tool_output_tokens * 4


def test_texts_that_speak_more_of_rarer_words_come_first() -> None:
    texts = ["the cat", "the dog and the cat and the bird", "the dog", "nothing", "a zebra, the zebra"]

    assert [index for index, _ in ranked("Zebra the", texts, 5)][:1] == [4]
    assert [index for index, _ in ranked("cat", texts, 5)] == [0, 1]
    assert [index for index, _ in ranked("dog", texts, 1)] == [2]
    assert ranked("", texts, 5) == ranked("x", [], 5) == []


def test_only_an_agent_with_a_skill_has_the_tools_and_a_profile_cannot_name_them() -> None:
    without = AgentProfile("a", "A", "Help.", ("read", *SKILL_TOOLS), model=LARGE)
    one = replace(without, skills=(TRIAGE,))

    assert not set(SKILL_TOOLS) & set(CATALOGUE)
    assert tools_of(without).names == ("read",)
    assert tools_of(one).names == ("read", *SKILL_TOOLS)
    assert tools_of(replace(one, model=None)).names == ("read", *SKILL_TOOLS)
    assert all(tools_of(one).get(name).access == "read" for name in SKILL_TOOLS)  # type: ignore[union-attr]


def test_a_model_that_bears_few_tools_keeps_those_that_lead_somewhere() -> None:
    every = tuple(CATALOGUE)[:9]
    agent = AgentProfile("a", "A", "Help.", every, model=SMALL, skills=(TRIAGE,))
    middling = profile_for("some-model", 8_192)

    assert tools_of(agent).narrowed(SMALL.max_tools).names == (*every[:4], "skill")
    with_texts = replace(agent, skills=(NOTES, TRIAGE))
    assert tools_of(with_texts).narrowed(SMALL.max_tools).names == (*every[:4], "skill", "skill_read")
    on_middling = tools_of(replace(agent, model=middling)).narrowed(middling.max_tools)
    assert on_middling.names == (*every[:8], *SKILL_TOOLS)
