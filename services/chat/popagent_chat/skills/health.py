"""What is wrong with the enabled skills of an agent: what the rules would refuse, and what leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from popagent_chat.skills import store
from popagent_db.pool import Connection
from popagent_kit.text import one_line
from popagent_proto.chat.agents import AgentFinding
from popagent_proto.chat.skills import SkillFields, SkillView

LONGEST_SHOWN: Final = 100
# A path below references/ as instructions name it: up to what cannot be part of one in running text.
_NAMED: Final = re.compile(r"(?<![\w/.-])references/([\w.-]+(?:/[\w.-]+)*)")
MOST_MISSING: Final = 5


@dataclass(frozen=True)
class CheckedSkills:
    """How many there are, and what was found."""

    count: int
    findings: list[AgentFinding]


async def skills_checked(conn: Connection, agent_id: str) -> CheckedSkills:
    """Return what is wrong with the agent's enabled skills, by name."""
    skills = await store.ENABLED_OF.all(conn, agent_id)
    return CheckedSkills(len(skills), [finding for skill in skills for finding in findings_of(skill)])


def findings_of(skill: SkillView) -> list[AgentFinding]:
    """Return what an edit would be refused for, and then what may be meant otherwise."""
    return [*_off_the_rules(skill), *_missing_references(skill)]


def _off_the_rules(skill: SkillView) -> Iterator[AgentFinding]:
    """A row may be older than a rule, or come from a hand in the database."""
    stored = skill.wire()
    wanted = [field.alias or name for name, field in SkillFields.model_fields.items()]
    try:
        SkillFields.model_validate({name: stored[name] for name in wanted})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])
        yield AgentFinding(
            agent_id=skill.agent_id,
            skill_id=skill.id,
            code="skill_off_the_rules",
            severity="fault",
            field=field,
            message=f"The {field} of the skill “{_shown(skill.name)}”: {first['msg'].removeprefix('Value error, ')}.",
            fix=f"Change the {field} of the skill, or disable it.",
        )


def _missing_references(skill: SkillView) -> Iterator[AgentFinding]:
    texts = [skill.instructions, *skill.references.values()]
    named = dict.fromkeys(path.rstrip(".") for text in texts for path in _NAMED.findall(text))
    folders = {path.rpartition("/")[0] for path in skill.references}
    missing = [path for path in named if path not in skill.references and path not in folders]
    for path in missing[:MOST_MISSING]:
        yield AgentFinding(
            agent_id=skill.agent_id,
            skill_id=skill.id,
            code="skill_reference_missing",
            severity="note",
            field="references",
            message=f"The skill “{_shown(skill.name)}” points to references/{_shown(path)}, which it does not have.",
            fix="Add the text to the references of the skill, or take the path out.",
        )


def _shown(text: str) -> str:
    return one_line(text, LONGEST_SHOWN)
