"""Skills of an agent: list, create, change, delete."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query

from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.paging import Page
from popagent_kit.ids import Id
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.chat.skills import (
    CreateSkill,
    DeleteSkill,
    ListSkills,
    SkillFields,
    SkillList,
    SkillPatch,
    SkillView,
    UpdateSkill,
)

router = APIRouter(prefix="/api/agents/{id}/skills", tags=["agents"], route_class=JsonRoute)

# As PathId.
SkillId: TypeAlias = Annotated[Id, Path(alias="skillId")]


@router.get("")
async def list_skills(bus: Bus, id: PathId, page: Annotated[Page, Query()]) -> SkillList:  # noqa: A002
    """List the skills of an agent by name, enabled and disabled, with all of their text."""
    return await bus.ask(ListSkills(agent_id=id, **page.model_dump()))


@router.post("", status_code=201)
async def create_skill(bus: Bus, id: PathId, body: SkillFields, command_id: CommandId) -> SkillView:  # noqa: A002
    """Create a skill; runs that begin from now on have it, unless it is disabled."""
    return await bus.ask(CreateSkill(command_id=command_id, agent_id=id, fields=body))


@router.patch("/{skillId}")
async def update_skill(
    bus: Bus,
    id: PathId,  # noqa: A002
    skill_id: SkillId,
    body: SkillPatch,
    command_id: CommandId,
) -> SkillView:
    """Change a skill; runs that begin from now on have it as it is then."""
    return await bus.ask(UpdateSkill(command_id=command_id, agent_id=id, skill_id=skill_id, body=body))


@router.delete("/{skillId}")
async def delete_skill(bus: Bus, id: PathId, skill_id: SkillId) -> DeletedView:  # noqa: A002
    """Delete a skill; runs that have begun keep it to their end."""
    return await bus.ask(DeleteSkill(agent_id=id, skill_id=skill_id))
