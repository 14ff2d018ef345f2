"""Skills: written procedures of an agent, in the form of the Agent Skills standard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire, not_blank
from popagent_proto.chat.sessions import DeletedView

LONGEST_SKILL_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1_024
LONGEST_SKILL_INSTRUCTIONS: Final = 50_000
LONGEST_REFERENCE: Final = 100_000
LONGEST_REFERENCE_PATH: Final = 200
MOST_REFERENCES: Final = 50
MOST_METADATA: Final = 32
# Of one agent.
MOST_SKILLS: Final = 50
# Bytes of UTF-8: of all references of one skill, and of all texts of one agent's skills.
REFERENCES_BYTES: Final = 400_000
SKILLS_BYTES: Final = 2_000_000

SKILL_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")


def _skill_name(name: str) -> str:
    if not SKILL_NAME.match(name):
        raise ValueError("must be lower-case letters and digits, in words joined by single hyphens")
    return name


def _below_the_skill(path: str) -> str:
    parts = path.split("/")
    if "\\" in path or any(part.strip() in {"", ".", ".."} or part != part.strip() for part in parts):
        raise ValueError("must be a relative path with forward slashes, such as guide.md or api/errors.md")
    return path


def size_bytes(text: str) -> int:
    """Return the bytes that `text` takes."""
    return len(text.encode())


def _tree(references: Mapping[str, str]) -> Mapping[str, str]:
    for path in references:
        parts = path.split("/")
        if any("/".join(parts[:depth]) in references for depth in range(1, len(parts))):
            raise ValueError(f"{path} lies below another text, which is no folder")
    total = sum(size_bytes(path) + size_bytes(text) for path, text in references.items())
    if total > REFERENCES_BYTES:
        raise ValueError(f"take {total:,} bytes together, and {REFERENCES_BYTES:,} is the most")
    return references


SkillName = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=LONGEST_SKILL_NAME,
        json_schema_extra={"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        description="Lower-case letters and digits, in words joined by hyphens; one of its agent alone.",
    ),
    AfterValidator(_skill_name),
]
SkillDescription = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=LONGEST_DESCRIPTION,
        description="What it is for and when to use it: all that the agent knows of it before it opens it.",
    ),
    AfterValidator(not_blank),
]
SkillInstructions = Annotated[
    Text,
    Field(min_length=1, max_length=LONGEST_SKILL_INSTRUCTIONS, description="The procedure, in Markdown."),
    AfterValidator(not_blank),
]
ReferencePath = Annotated[
    Line, Field(min_length=1, max_length=LONGEST_REFERENCE_PATH), AfterValidator(_below_the_skill)
]
References = Annotated[
    dict[ReferencePath, Annotated[Text, Field(max_length=LONGEST_REFERENCE)]],
    Field(
        max_length=MOST_REFERENCES,
        description="Texts that the procedure points to, by path below references/; read one by one when needed.",
    ),
    AfterValidator(_tree),
]
SkillMetadata = Annotated[
    dict[Annotated[Line, Field(max_length=64)], Annotated[Text, Field(max_length=1_000)]],
    Field(max_length=MOST_METADATA, description="What its author notes about it; nobody reads meaning into it."),
]
License = Annotated[Line, Field(max_length=500)]
Compatibility = Annotated[Line, Field(max_length=500, description="What it needs to work, in words.")]
AllowedTools = Annotated[
    Line,
    Field(
        max_length=1_000,
        description="`allowed-tools` of the standard: kept, and giving no right; tools come from the profile.",
    ),
]
Provenance = Annotated[Line, Field(max_length=500, description="Where it comes from, in words or as an address.")]


class SkillView(View):
    """A stored skill; bounds are stated on SkillFields."""

    id: Id
    agent_id: Id
    name: str
    description: str
    instructions: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, str]
    allowed_tools: str | None
    references: dict[str, str]
    provenance: str | None
    evolution_managed: bool = Field(
        description="It was learned, and may be changed by what is learned later. Ends with the first edit."
    )
    enabled: bool = Field(description="A disabled one stays editable, and no run has it.")
    revision: int = Field(description="Rises with every change; send it with PATCH. 0: as it was made.")
    created_at: Moment
    updated_at: Moment


class SkillList(ListView):
    """By name; a page holds about 800 kB at most, or one skill."""

    items: list[SkillView]


class ListSkills(Query[SkillList]):
    """The skills of one agent, enabled and disabled."""

    subject: ClassVar = "popagent.chat.qry.skills-list.v1"

    agent_id: Id
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)


class SkillFields(Wire):
    """What a skill is made of."""

    name: SkillName
    description: SkillDescription
    instructions: SkillInstructions
    license: License | None = None
    compatibility: Compatibility | None = None
    metadata: SkillMetadata = Field(default_factory=dict)
    allowed_tools: AllowedTools | None = None
    references: References = Field(default_factory=dict)
    provenance: Provenance | None = None
    enabled: bool = True


class CreateSkill(Command[SkillView]):
    """Store a skill of an agent, whose next run has it. A repeated `command_id` gives the stored one.

    409 when the agent has one of this name (with the stored `skill`), or as many as it may have.
    """

    subject: ClassVar = "popagent.chat.cmd.skills-create.v1"

    command_id: Id
    agent_id: Id
    fields: SkillFields


class SkillPatch(Wire):
    """Fields to change; an absent one stays. `license`, `compatibility`, `allowedTools`, `provenance` may be null."""

    revision: int = Field(ge=0, description="The one you saw last.")
    name: SkillName | None = None
    description: SkillDescription | None = None
    instructions: SkillInstructions | None = None
    license: License | None = None
    compatibility: Compatibility | None = None
    metadata: SkillMetadata | None = None
    allowed_tools: AllowedTools | None = None
    references: References | None = Field(default=None, description="All of them: what is not named is gone.")
    provenance: Provenance | None = None
    enabled: bool | None = None


class UpdateSkill(Command[SkillView]):
    """Change a skill for the runs that begin from now on; it is the user's own from then on.

    An old revision answers 409 with the stored skill.
    """

    subject: ClassVar = "popagent.chat.cmd.skills-update.v1"

    command_id: Id
    agent_id: Id
    skill_id: Id
    body: SkillPatch


class DeleteSkill(Command[DeletedView]):
    """Delete a skill; runs that have begun keep it to their end."""

    subject: ClassVar = "popagent.chat.cmd.skills-delete.v1"

    agent_id: Id
    skill_id: Id


class SkillChanged(Event):
    """A skill was made or changed; `GET /api/agents/{id}/skills` has it."""

    subject: ClassVar = "popagent.chat.evt.skills-changed.v1"

    skill_id: Id
    agent_id: Id
    name: str
    enabled: bool
    changed: list[str] = Field(description="Names of the fields; all that were given when it is new.")


class SkillDeleted(Event):
    """A skill is gone."""

    subject: ClassVar = "popagent.chat.evt.skills-deleted.v1"

    skill_id: Id
    agent_id: Id
    name: str
