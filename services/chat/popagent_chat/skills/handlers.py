"""Skills of agents: list, create, change, delete."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from popagent_bus import Handlers
from popagent_chat.agents.handlers import AgentNotFoundError
from popagent_chat.deps import ChatDeps
from popagent_chat.skills import store
from popagent_db.pool import Connection
from popagent_kit.cursors import UnknownCursorError
from popagent_kit.errors import ConflictError, KeyUsedError, NotFoundError, RevisionConflictError
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.chat.skills import (
    LONGEST_SKILL_NAME,
    MOST_SKILLS,
    SKILL_NAME,
    SKILLS_BYTES,
    CreateSkill,
    DeleteSkill,
    ListSkills,
    SkillChanged,
    SkillDeleted,
    SkillFields,
    SkillList,
    SkillView,
    UpdateSkill,
)
from popagent_proto.patches import given_fields, wire_name

handlers = Handlers[ChatDeps]()

PAGE_BYTES: Final = 800_000
NULLABLE: Final = frozenset({"license", "compatibility", "allowed_tools", "provenance"})


class SkillNotFoundError(NotFoundError):
    """The agent has no skill with this id."""


class SkillExistsError(ConflictError):
    """The agent has a skill of this name."""

    code = "skill_exists"


class TooManySkillsError(ConflictError):
    """The agent has as many skills as it may have. Delete one first."""

    code = "too_many_skills"


class SkillsTooLargeError(ConflictError):
    """The skills of this agent would be larger together than they may be. Shorten or delete one first."""

    code = "skills_too_large"


@handlers.answers(ListSkills)
async def list_skills(deps: ChatDeps, query: ListSkills) -> SkillList:
    """Return one page, by name."""
    after = _name_of(query.cursor)
    async with deps.pool.acquire() as conn:
        if not await store.HAS_AGENT.value(conn, query.agent_id):
            raise AgentNotFoundError
        page = await store.PAGE.all(conn, query.agent_id, after, query.limit, PAGE_BYTES)
        more = bool(page) and await store.MORE.value(conn, query.agent_id, page[-1].name)
    return SkillList(items=page, next_cursor=page[-1].name if more else None)


@handlers.answers(CreateSkill)
async def create_skill(deps: ChatDeps, command: CreateSkill) -> SkillView:
    """Store the skill; the command's id is the skill's, so a replay finds it."""
    fields = command.fields
    async with deps.outbox.transaction() as conn:
        await _hold(conn, command.agent_id)
        stored = await store.GET.first(conn, command.command_id)
        if stored is not None:
            if not _was_made_by(stored, command):
                raise KeyUsedError
            return stored
        await _check_name(conn, command.agent_id, fields.name)
        if await store.COUNT.value(conn, command.agent_id) >= MOST_SKILLS:
            raise TooManySkillsError
        await _check_size(conn, command.agent_id, command.command_id, fields)
        await store.INSERT.run(conn, command.command_id, command.agent_id, *store.columns_of(fields))
        made = await _told(deps, conn, command.command_id, fields.model_fields_set)
    deps.next_turn_changed()
    return made


@handlers.answers(UpdateSkill)
async def update_skill(deps: ChatDeps, command: UpdateSkill) -> SkillView:
    """Change the given fields; one that is sent as it is stored is no change, but of whose the skill is."""
    given = given_fields(command.body, nullable=NULLABLE)
    async with deps.outbox.transaction() as conn:
        await _hold(conn, command.agent_id)
        stored = await store.LOCK.first(conn, command.agent_id, command.skill_id)
        if stored is None:
            raise SkillNotFoundError
        if stored.revision != command.body.revision:
            raise RevisionConflictError(extra={"skill": stored.wire()})
        changes = {name: value for name, value in given.items() if value != getattr(stored, name)}
        if not changes and not stored.evolution_managed:
            return stored
        fields = _merged(stored, changes)
        if "name" in changes:
            await _check_name(conn, command.agent_id, fields.name)
        await _check_size(conn, command.agent_id, stored.id, fields)
        await store.UPDATE.run(conn, stored.id, stored.agent_id, *store.columns_of(fields))
        ours_no_more = ["evolution_managed"] if stored.evolution_managed else []
        changed = await _told(deps, conn, stored.id, [*changes, *ours_no_more])
    deps.next_turn_changed()
    return changed


@handlers.answers(DeleteSkill)
async def delete_skill(deps: ChatDeps, command: DeleteSkill) -> DeletedView:
    """Delete the skill."""
    async with deps.outbox.transaction() as conn:
        await _hold(conn, command.agent_id)
        gone = await store.DELETE.first(conn, command.agent_id, command.skill_id)
        if gone is None:
            raise SkillNotFoundError
        event = SkillDeleted(
            aggregate_id=command.skill_id,
            version=gone.revision + 1,
            skill_id=command.skill_id,
            agent_id=command.agent_id,
            name=gone.name,
        )
        await deps.outbox.add(conn, event)
    deps.next_turn_changed()
    return DeletedView(id=command.skill_id)


def _name_of(cursor: str | None) -> str:
    if cursor is None:
        return ""
    if len(cursor) > LONGEST_SKILL_NAME or not SKILL_NAME.match(cursor):
        raise UnknownCursorError
    return cursor


def _was_made_by(stored: SkillView, command: CreateSkill) -> bool:
    """Tell whether this command made the skill; once somebody changed it, only its agent tells."""
    same = stored.revision > 0 or store.columns_of(stored) == store.columns_of(command.fields)
    return stored.agent_id == command.agent_id and same


def _merged(stored: SkillView, changes: dict[str, Any]) -> SkillFields:
    """Return what is to be stored; what was sent is checked already, and what is stored has been."""
    kept = {name: getattr(stored, name) for name in SkillFields.model_fields}
    return SkillFields.model_construct(**{**kept, **changes})


async def _hold(conn: Connection, agent_id: str) -> None:
    """Let nobody else add or change a skill of the agent before this transaction ends."""
    if await store.LOCK_AGENT.first(conn, agent_id) is None:
        raise AgentNotFoundError


async def _check_name(conn: Connection, agent_id: str, name: str) -> None:
    other = await store.NAMED.first(conn, agent_id, name)
    if other is not None:
        raise SkillExistsError(f"The agent has a skill named {name} already.", extra={"skill": other.wire()})


async def _check_size(conn: Connection, agent_id: str, skill_id: str, fields: SkillFields) -> None:
    together = await store.OTHER_BYTES.value(conn, agent_id, skill_id) + store.bytes_of(fields)
    if together > SKILLS_BYTES:
        raise SkillsTooLargeError(
            f"The skills of this agent would take {together:,} bytes together, and {SKILLS_BYTES:,} is the most. "
            "Shorten or delete one first."
        )


async def _told(deps: ChatDeps, conn: Connection, skill_id: str, names: Iterable[str]) -> SkillView:
    skill = await store.GET.one(conn, skill_id)
    event = SkillChanged(
        aggregate_id=skill.id,
        version=skill.revision,
        skill_id=skill.id,
        agent_id=skill.agent_id,
        name=skill.name,
        enabled=skill.enabled,
        changed=sorted(wire_name(SkillView, name) for name in names),
    )
    await deps.outbox.add(conn, event)
    return skill
