"""Hooks: list, create, change, delete, try; and what they did in a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.paging import HookRunPage
from popagent_gateway.sealed import sealed_field
from popagent_proto.chat.hooks import (
    HOOK_SECRET_PURPOSE,
    CreateHook,
    DeleteHook,
    HookChanges,
    HookFields,
    HookList,
    HookRunList,
    HookTrialView,
    HookView,
    ListHookRuns,
    ListHooks,
    TryHook,
    UpdateHook,
)
from popagent_proto.chat.sessions import DeletedView
from popagent_proto.http import CreateHookBody, PatchHookBody
from popagent_proto.task_runner.hooks import ListTaskHookRuns

router = APIRouter(prefix="/api", tags=["hooks"], route_class=JsonRoute)


@router.get("/hooks")
async def list_hooks(bus: Bus) -> HookList:
    """List every hook in the order in which they run."""
    return await bus.ask(ListHooks())


@router.post("/hooks", status_code=201)
async def create_hook(bus: Bus, body: CreateHookBody, command_id: CommandId) -> HookView:
    """Create a hook; its secret is sealed here and opened by its keeper alone."""
    fields = HookFields(**body.model_dump(exclude_unset=True, exclude={"secret"}))
    secret = await sealed_field(bus, body, "secret", HOOK_SECRET_PURPOSE)
    return await bus.ask(CreateHook(command_id=command_id, fields=fields, **secret))


@router.patch("/hooks/{id}")
async def update_hook(bus: Bus, id: PathId, body: PatchHookBody, command_id: CommandId) -> HookView:  # noqa: A002
    """Change a hook; runs that begin now use it as it is then."""
    changes = HookChanges(**body.model_dump(exclude_unset=True, exclude={"secret"}))
    secret = await sealed_field(bus, body, "secret", HOOK_SECRET_PURPOSE)
    return await bus.ask(UpdateHook(command_id=command_id, hook_id=id, changes=changes, **secret))


@router.delete("/hooks/{id}")
async def delete_hook(bus: Bus, id: PathId) -> DeletedView:  # noqa: A002
    """Delete a hook; what it did stays in the audit."""
    return await bus.ask(DeleteHook(hook_id=id))


@router.post("/hooks/{id}/test")
async def try_hook(bus: Bus, id: PathId) -> HookTrialView:  # noqa: A002
    """Run a hook once on an example of its event, for up to 15 s; nothing is stored."""
    return await bus.ask(TryHook(hook_id=id))


@router.get("/sessions/{id}/hooks")
async def list_runs(bus: Bus, id: PathId, page: Annotated[HookRunPage, Query()]) -> HookRunList:  # noqa: A002
    """List what hooks did in a session, in the order in which they ran."""
    return await bus.ask(ListHookRuns(session_id=id, **page.model_dump()))


@router.get("/tasks/{id}/hooks")
async def list_runs_of_task(bus: Bus, id: PathId, page: Annotated[HookRunPage, Query()]) -> HookRunList:  # noqa: A002
    """List what hooks did in a task and were told of it, in the order in which they ran."""
    return await bus.ask(ListTaskHookRuns(task_id=id, **page.model_dump()))
