"""The tools that open skills of the run's agent; they read what the run began with, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from popagent_agent.run_context import AgentProfile, RunContext
from popagent_agent.skills import OPEN, READ, SEARCH, Skill
from popagent_agent.toolset import Tool, tool
from popagent_kit.text import excerpt, one_line
from popagent_tools.ranking import ranked, words_of
from popagent_tools.workspace import room

FEWEST_CHARACTERS: Final = 400
# What a skill's own text is called when it is read on.
MAIN: Final = "SKILL.md"
FOLDER: Final = "references/"
PREVIEW: Final = 200
MOST_HITS: Final = 20
# A passage of a text that is searched ends at the first empty line after so many lines, or after the most.
FEWEST_LINES: Final = 6
MOST_LINES: Final = 24
# A model that bears fewer tools than this is offered only those that it has a use for.
FEWEST_TOOLS_FOR_ALL: Final = 8


@tool(OPEN, access="read", timeout_s=15)
async def open_skill(run: RunContext, name: str) -> str:
    """Open a skill by its name to get its procedure, before a task that fits it."""
    skill = _find(run, name)
    if skill is None:
        return _unknown(run, name)
    characters = room(run, FEWEST_CHARACTERS)
    listed = _listed(skill, characters // 3)
    text = _lines(skill.instructions, MAIN, 1, None, characters - len(listed))
    return f"{text}\n\n{listed}" if listed else text


@tool(READ, access="read", timeout_s=15)
async def read_skill(
    run: RunContext,
    skillName: str,  # noqa: N803 (the names that models read)
    path: str,
    startLine: int = 1,  # noqa: N803
    endLine: int | None = None,  # noqa: N803
) -> str:
    """Read a text that an opened skill refers to, for example references/guide.md; a line to begin and end with."""
    skill = _find(run, skillName)
    if skill is None:
        return _unknown(run, skillName)
    plain = path.strip().removeprefix("./")
    if plain == MAIN:
        return _lines(skill.instructions, MAIN, startLine, endLine, room(run, FEWEST_CHARACTERS))
    plain = plain.removeprefix(FOLDER)
    text = skill.references.get(plain)
    if text is None:
        listed = _listed(skill, room(run, FEWEST_CHARACTERS)) or f"It has no references; {MAIN} is all of it."
        return f"{skill.name} has no text {_quoted(path)}. {listed}"
    return _lines(text, FOLDER + plain, startLine, endLine, room(run, FEWEST_CHARACTERS))


@tool(SEARCH, access="read", timeout_s=30)
async def search_skills(
    run: RunContext,
    query: str,
    skillNames: list[str] | None = None,  # noqa: N803
    topK: int = 5,  # noqa: N803
) -> str:
    """Find the passages of your skills and their references that speak most of some words."""
    skills = list(run.agent.skills)
    if skillNames:
        unknown = [name for name in skillNames if _find(run, name) is None]
        if unknown:
            return _unknown(run, unknown[0])
        wanted = {name.strip() for name in skillNames}
        skills = [skill for skill in skills if skill.name in wanted]
    if not words_of(query):
        return f"There is no word in the query. {_names(run)}"
    most = max(1, min(topK, MOST_HITS, room(run, FEWEST_CHARACTERS) // (PREVIEW + 100)))
    hits = await asyncio.to_thread(_search, skills, query, most)
    return "\n".join(hits) or f"No skill speaks of {_quoted(query)}. {_names(run)}"


def skill_tools(agent: AgentProfile) -> list[Tool]:
    """Return what an agent with an enabled skill is offered besides the tools of its profile; nothing without one.

    Whatever else its model cannot bear, these stay: a skill that is announced and cannot be opened is a lie. A model
    that gets lost among few tools is not offered what leads nowhere: a reader without references, and the search.
    """
    if not agent.skills:
        return []
    if agent.model is None or agent.model.max_tools >= FEWEST_TOOLS_FOR_ALL:
        return [open_skill, read_skill, search_skills]
    return [open_skill, read_skill] if any(skill.references for skill in agent.skills) else [open_skill]


@dataclass(frozen=True, slots=True)
class _Passage:
    skill: str
    path: str
    first: int
    last: int
    text: str

    def hit(self, score: float) -> str:
        preview = one_line(self.text, PREVIEW)
        return f"[{self.skill}] {self.path} (lines {self.first}-{self.last}) (score: {score:.2f})\n  {preview}"


def _search(skills: Sequence[Skill], query: str, most: int) -> list[str]:
    passages = [passage for skill in skills for passage in _passages(skill)]
    names = {skill.name: f"{skill.name} {skill.description}" for skill in skills}
    # What a skill is for stands in its description: its first passage is found by it.
    texts = [
        f"{names[each.skill]}\n{each.text}" if each.path == MAIN and each.first == 1 else each.text for each in passages
    ]
    return [passages[index].hit(score) for index, score in ranked(query, texts, most)]


def _passages(skill: Skill) -> Iterator[_Passage]:
    texts = {MAIN: skill.instructions, **{FOLDER + path: text for path, text in sorted(skill.references.items())}}
    for path, text in texts.items():
        lines = text.split("\n")
        first = 0
        for number, line in enumerate(lines):
            length = number + 1 - first
            ends = length >= MOST_LINES or (length >= FEWEST_LINES and not line.strip())
            if ends or number + 1 == len(lines):
                yield _Passage(skill.name, path, first + 1, number + 1, "\n".join(lines[first : number + 1]))
                first = number + 1


def _find(run: RunContext, name: str) -> Skill | None:
    return next((skill for skill in run.agent.skills if skill.name == name.strip()), None)


def _unknown(run: RunContext, name: str) -> str:
    return f"There is no skill {_quoted(name)}. {_names(run)}"


def _names(run: RunContext) -> str:
    return excerpt(f"Your skills: {', '.join(skill.name for skill in run.agent.skills)}.", FEWEST_CHARACTERS * 2)


def _quoted(text: str) -> str:
    return f"“{one_line(text, 80)}”"


def _listed(skill: Skill, most: int) -> str:
    """Return the skill's references by path, as many as `most` characters hold."""
    if not skill.references:
        return ""
    lines = [f"References, to be opened with {READ} when you need them:"]
    paths = sorted(skill.references)
    for number, path in enumerate(paths):
        if sum(map(len, lines)) + len(path) > most:
            lines.append(f"- and {len(paths) - number} more; {SEARCH} finds what stands in them")
            break
        lines.append(f"- {FOLDER}{path}")
    return "\n".join(lines)


def _lines(text: str, path: str, start: int, end: int | None, most: int) -> str:
    """Return lines `start` to `end`, whole, as many as `most` characters hold; a head says which, if not all."""
    lines = text.removesuffix("\n").split("\n")
    count = len(lines)
    first = max(1, start)
    last = count if end is None else min(end, count)
    if first > count:
        return f"{path} has only {count} line{'s' if count > 1 else ''}."
    if last < first:
        return f"Line {last} comes before line {first}; {path} has {count} line{'s' if count > 1 else ''}."
    shown: list[str] = []
    left = most
    for line in lines[first - 1 : last]:
        left -= len(line) + 1
        if left < 0:
            break
        shown.append(line)
    cut = not shown
    if cut:
        shown = [f"{lines[first - 1][:most]} [the line goes on for {len(lines[first - 1]) - most} characters]"]
    last_shown = first + len(shown) - 1
    body = "\n".join(shown)
    if not cut and (first, last_shown) == (1, count):
        return body
    more = f'\n[to read on: {READ} with path "{path}" and startLine {last_shown + 1}]' if last_shown < last else ""
    return f"{path} (lines {first}-{last_shown} of {count})\n{body}{more}"
