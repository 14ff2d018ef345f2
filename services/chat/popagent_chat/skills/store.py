"""Rows of skills."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import BaseModel

from popagent_db.query import Query
from popagent_proto.chat.skills import SkillFields, SkillView, size_bytes


class SkillStamp(BaseModel):
    """Which skill, and when it was changed last: where both are known, its text is."""

    id: str
    agent_id: str
    updated_at: datetime


class SkillText(SkillStamp):
    """What a run has of a skill."""

    name: str
    description: str
    instructions: str
    references: dict[str, str]


class DeletedSkill(BaseModel):
    """What a skill was called, and how often it was changed."""

    name: str
    revision: int


_COLUMNS: Final = """id, agent_id, name, description, instructions, license, compatibility, metadata, allowed_tools,
        reference_texts as "references", provenance, evolution_managed, enabled, revision, created_at, updated_at"""
_VIEW: Final = f"""
    select {_COLUMNS}
    from skills"""

GET: Final = Query(SkillView, f"{_VIEW} where id = $1")

LOCK: Final = Query(SkillView, f"{_VIEW} where agent_id = $1 and id = $2 for update")

NAMED: Final = Query(SkillView, f"{_VIEW} where agent_id = $1 and name = $2")

# $2 is the name that was seen last; $4 bounds the bytes of the page, of which one skill comes in any case.
PAGE: Final = Query(
    SkillView,
    f"""
    select {_COLUMNS}
    from (
        select s.*, sum(s.text_bytes + 1024) over (order by s.name) as bytes,
            row_number() over (order by s.name) as place
        from (select * from skills where agent_id = $1 and name > $2 order by name limit $3) s
    ) page
    where bytes <= $4 or place = 1
    order by name
    """,
)

MORE: Final = Query(bool, "select exists (select 1 from skills where agent_id = $1 and name > $2)")

# Held while the skills of an agent are counted and one is added or grows.
LOCK_AGENT: Final = Query(str, "select id from agents where id = $1 for no key update")

HAS_AGENT: Final = Query(bool, "select exists (select 1 from agents where id = $1)")

COUNT: Final = Query(int, "select count(*) from skills where agent_id = $1")

# What a run of the agent $1 may need: its own enabled skills and those of whom it can give work to.
STAMPS: Final = Query(
    SkillStamp,
    """
    select s.id, s.agent_id, s.updated_at
    from skills s
    join agents a on a.id = s.agent_id
    where s.enabled and (a.id = $1 or a.delegable)
    order by s.agent_id, s.name
    """,
)

# One that was disabled or deleted after its stamp was read is not among them.
TEXTS: Final = Query(
    SkillText,
    """
    select id, agent_id, updated_at, name, description, instructions, reference_texts as "references"
    from skills
    where enabled and id = any($1)
    """,
)

# In bytes of their names, so that a prompt is the same every time.
ENABLED_OF: Final = Query(SkillView, f"{_VIEW} where agent_id = $1 and enabled order by name")

# Of all others of the agent.
OTHER_BYTES: Final = Query(
    int, "select coalesce(sum(text_bytes), 0)::bigint from skills where agent_id = $1 and id <> $2"
)

INSERT: Final = Query(
    None,
    """
    insert into skills (
        id, agent_id, name, description, instructions, license, compatibility, metadata, allowed_tools,
        reference_texts, provenance, enabled, text_bytes, evolution_managed, revision
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, false, 0)
    """,
)

# Whoever edits a skill makes it the user's own.
UPDATE: Final = Query(
    None,
    """
    update skills
    set name = $3, description = $4, instructions = $5, license = $6, compatibility = $7, metadata = $8,
        allowed_tools = $9, reference_texts = $10, provenance = $11, enabled = $12, text_bytes = $13,
        evolution_managed = false, revision = revision + 1, updated_at = clock_timestamp()
    where agent_id = $2 and id = $1
    """,
)

DELETE: Final = Query(DeletedSkill, "delete from skills where agent_id = $1 and id = $2 returning name, revision")


def bytes_of(fields: SkillFields | SkillView) -> int:
    """Return the bytes that all texts of a skill take."""
    optional = (fields.license, fields.compatibility, fields.allowed_tools, fields.provenance)
    pairs = [*fields.metadata.items(), *fields.references.items()]
    texts = [fields.name, fields.description, fields.instructions, *(text or "" for text in optional)]
    return sum(map(size_bytes, texts)) + sum(size_bytes(name) + size_bytes(text) for name, text in pairs)


def columns_of(fields: SkillFields | SkillView) -> tuple[object, ...]:
    """Return what INSERT and UPDATE store, behind the ids of skill and agent."""
    return (
        fields.name,
        fields.description,
        fields.instructions,
        fields.license,
        fields.compatibility,
        fields.metadata,
        fields.allowed_tools,
        fields.references,
        fields.provenance,
        fields.enabled,
        bytes_of(fields),
    )
