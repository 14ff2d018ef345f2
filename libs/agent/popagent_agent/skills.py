"""Skills as a run has them: announced by name and purpose, opened by the model when a task needs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

from popagent_agent.normalise import normalised
from popagent_agent.tokens import estimate_tokens
from popagent_kit.text import excerpt, one_line

# Tools whose results are texts of our own store: whoever looks back at a run needs the calls alone.
OPEN: Final = "skill"
READ: Final = "skill_read"
SEARCH: Final = "skill_search"
SKILL_TOOLS: Final = (OPEN, READ, SEARCH)
# Of a model's window, for what it is told of its skills before it opens one.
ANNOUNCED_SHARE: Final = 16
# Descriptions are cut to the first of these with which all skills fit.
CUTS: Final = (1_024, 400, 200, 100, 50)
INTRODUCTION: Final = (
    "Skills are procedures for certain tasks, and no tools. When a task fits one, open it first with the tool "
    f"{OPEN}, unasked, and work as it says."
)


@dataclass(frozen=True, slots=True)
class Skill:
    """An enabled skill as it was when the run began; `references` are texts by path."""

    name: str
    description: str
    instructions: str
    references: Mapping[str, str] = field(default_factory=dict)


def announcement(skills: Sequence[Skill], window: int) -> str:
    """Return what a model with this window, in tokens, is told of its skills: by name, the same every time.

    With many skills or a small window descriptions are cut, then left out; at last names are, with a note.
    """
    purposes = {skill.name: one_line(normalised(skill.description), CUTS[0]) for skill in skills}
    names = sorted(purposes)
    room = window // ANNOUNCED_SHARE
    for most in CUTS:
        text = _text([_entry(name, excerpt(purposes[name], most)) for name in names])
        if estimate_tokens(text) <= room:
            return text
    return _names(names, room)


def _names(names: Sequence[str], room: int) -> str:
    """Return as many names as there is room for, at least one."""
    entries = [f"<skill><name>{name}</name></skill>" for name in names]
    kept = len(entries)
    while kept > 1 and estimate_tokens(_text([*entries[:kept], _more(len(entries) - kept)])) > room:
        kept -= 1
    return _text([*entries[:kept], _more(len(entries) - kept)])


def _more(count: int) -> str:
    return f"({count} more; {SEARCH} finds them)" if count else ""


def _text(entries: Sequence[str]) -> str:
    return "\n".join([INTRODUCTION, "<available_skills>", *filter(None, entries), "</available_skills>"])


def _entry(name: str, purpose: str) -> str:
    """A purpose is one line, and nothing in it closes the list or opens another one."""
    return f"<skill><name>{name}</name><description>{escape(purpose)}</description></skill>"
