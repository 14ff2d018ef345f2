"""What runs of other services begin with: they carry it out, and everything that they go by is kept here."""

from __future__ import annotations

import hashlib
from typing import Final

from pydantic import BaseModel

from popagent_agent.skills import Skill
from popagent_bus import Handlers, blobs
from popagent_chat.agents import store as agents
from popagent_chat.deps import ChatDeps
from popagent_chat.hooks import store as hooks
from popagent_chat.models import store as connections
from popagent_chat.runtime_settings import store as runtime_settings
from popagent_chat.runtime_settings.store import SettingsMissingError
from popagent_chat.skills import store as skills
from popagent_chat.skills.shelf import SkillShelf
from popagent_chat.skills.store import SkillStamp
from popagent_chat.workspaces import store as workspaces
from popagent_db.query import Query
from popagent_kit import sealing
from popagent_kit.errors import InvalidInputError
from popagent_kit.sealing import SealError
from popagent_models.endpoint import Endpoint
from popagent_proto.chat.agents import ORCHESTRATOR, AgentView
from popagent_proto.chat.runs import (
    RUN_SECRET_PURPOSE,
    GetRunHooks,
    GetRunSnapshot,
    RunHook,
    RunHooks,
    RunModel,
    RunSkill,
    RunSkills,
    RunSnapshot,
)
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_proto.common import BlobRef
from popagent_runs.hooks.rows import RESOURCE as HOOKS
from popagent_runs.hooks.rows import StoredHook
from popagent_runs.models.choice import NAME, NOTHING_STORED, ModelChoice, StoredConnection
from popagent_runs.models.choice import RESOURCE as MODELS

handlers = Handlers[ChatDeps]()

# What is larger goes around the message.
INLINE_BYTES: Final = 300_000


class BeginsWith(BaseModel):
    """What is stored, as JSON of one statement; None where a row is missing."""

    settings: AgentRuntimeView | None
    connection: StoredConnection | None
    agent: AgentView | None
    delegable: list[AgentView] | None
    workspace: WorkspaceView | None
    hooks: list[StoredHook] | None
    skills: list[SkillStamp] | None


BEGINS_WITH: Final = Query(
    BeginsWith,
    f"""
    select
        (select to_json(x) from ({runtime_settings.GET.sql}) x) as settings,
        (select to_json(x) from ({connections.GET.sql}) x) as connection,
        (select to_json(x) from ({agents.GET.sql}) x) as agent,
        (select json_agg(x) from ({agents.DELEGABLE.sql}) x) as delegable,
        (select to_json(x) from ({workspaces.GET.sql.replace("$1", "$2")}) x) as workspace,
        (select json_agg(x) from ({hooks.ENABLED.sql}) x) as hooks,
        (select json_agg(x) from ({skills.STAMPS.sql}) x) as skills
    """,
)


@handlers.answers(GetRunSnapshot)
async def get_snapshot(deps: ChatDeps, query: GetRunSnapshot) -> RunSnapshot:
    """Read it all at one moment, and seal what is secret to the asking process."""
    agent_id = query.agent_id or ORCHESTRATOR
    async with deps.pool.acquire() as conn:
        stored = await BEGINS_WITH.one(conn, agent_id, query.workspace_id)
        opened = await SkillShelf().of(conn, stored.skills or [])
    if stored.settings is None:
        raise SettingsMissingError
    if stored.agent is None:
        raise InvalidInputError(f"There is no agent “{agent_id}” any more.", field="agentId")
    if stored.workspace is None:
        raise InvalidInputError("There is no workspace with this id any more.", field="workspaceId")
    # A specialist gives work to nobody.
    delegable = stored.delegable or [] if agent_id == ORCHESTRATOR else []
    inline, blob = await _skills(deps, opened, {stored.agent.id, *(each.id for each in delegable)})
    choice = ModelChoice(stored.settings, stored.connection or NOTHING_STORED)
    return RunSnapshot(
        settings=_with_default_model(deps, stored.settings),
        model=_model(deps, choice, query.seal_to),
        agent=stored.agent,
        delegable=delegable,
        workspace=stored.workspace,
        hooks=[_hook(deps, hook, query.seal_to) for hook in stored.hooks or []],
        skills=inline,
        skills_blob=blob,
    )


@handlers.answers(GetRunHooks)
async def get_hooks(deps: ChatDeps, query: GetRunHooks) -> RunHooks:
    """Return them as they are now."""
    async with deps.pool.acquire() as conn:
        stored = await hooks.ENABLED_FOR.all(conn, query.event)
    return RunHooks(items=[_hook(deps, hook, query.seal_to) for hook in stored])


def _with_default_model(deps: ChatDeps, settings: AgentRuntimeView) -> AgentRuntimeView:
    """The environment's default model counts where the settings name none; the asking service need not know it."""
    return settings.model_copy(update={"default_model": settings.default_model or deps.models.configured_model})


def _model(deps: ChatDeps, choice: ModelChoice, seal_to: str) -> RunModel:
    with deps.models.endpoints.borrowed(choice) as (_, source):
        at = source.client.endpoint
    if at is None:
        return RunModel(url=None, sealed_key=None, revision="")
    sealed = None if at.key is None else _sealed(at.key, MODELS, NAME, seal_to)
    return RunModel(url=at.url, sealed_key=sealed, revision=_revision(at))


def _revision(at: Endpoint) -> str:
    """A digest tells an address and a key from others; it is no way back to the key, which is long or no secret."""
    return hashlib.sha256(f"{at.url}\n{at.key or ''}".encode()).hexdigest()[:16]


def _hook(deps: ChatDeps, hook: StoredHook, seal_to: str) -> RunHook:
    secret = None
    if hook.sealed is not None:
        value = deps.keyring.open(bytes.fromhex(hook.sealed), HOOKS, hook.id)
        secret = _sealed(value.get_secret_value(), HOOKS, hook.id, seal_to)
    return RunHook(**hook.model_dump(exclude={"sealed"}), sealed_secret=secret)


def _sealed(value: str, resource: str, name: str, seal_to: str) -> str:
    try:
        return sealing.sealed(seal_to, value, f"{RUN_SECRET_PURPOSE}/{resource}/{name}")
    except SealError:
        raise InvalidInputError("sealTo is not a public key.", field="sealTo") from None


async def _skills(
    deps: ChatDeps, opened: dict[str, tuple[Skill, ...]], wanted: set[str]
) -> tuple[RunSkills | None, BlobRef | None]:
    items = [
        RunSkill(
            agent_id=agent_id,
            name=skill.name,
            description=skill.description,
            instructions=skill.instructions,
            references=dict(skill.references),
        )
        for agent_id, theirs in opened.items()
        if agent_id in wanted
        for skill in theirs
    ]
    found = RunSkills(items=items)
    encoded = found.encode()
    if len(encoded) <= INLINE_BYTES:
        return found, None
    return None, await blobs.put(deps.bus, encoded, media_type="application/json")
