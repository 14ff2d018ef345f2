"""Hooks: list, create, change, delete, try, and what they did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.hooks import store
from popagent_chat.secrets import store as secrets
from popagent_chat.sessions import store as sessions
from popagent_chat.sessions.handlers import SessionNotFoundError
from popagent_db.pool import Connection
from popagent_kit.errors import (
    ConflictError,
    InvalidInputError,
    KeyUsedError,
    NotFoundError,
    RateLimitedError,
    RevisionConflictError,
)
from popagent_kit.ids import new_id
from popagent_proto.chat.hooks import (
    HOOK_SECRET_PURPOSE,
    MOST_HOOKS,
    CreateHook,
    DeleteHook,
    HookChanged,
    HookDeleted,
    HookEvent,
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
from popagent_proto.patches import given_fields
from popagent_runs.hooks.asking import sent_to
from popagent_runs.hooks.audited import audit_page
from popagent_runs.hooks.content import event_body
from popagent_runs.hooks.origins import checked_url
from popagent_runs.hooks.rows import RESOURCE
from popagent_runs.hooks.rules import checked_matcher, checked_on_failure

handlers = Handlers[ChatDeps]()

SHORTEST_SECRET: Final = 16
LONGEST_SECRET: Final = 256
# Milliseconds; whoever tries a hook waits for the answer.
LONGEST_TRIAL_MS: Final = 15_000
_CALL: Final[dict[str, object]] = {
    "callId": "call_1",
    "tool": "write",
    "arguments": {"path": "notes.md", "content": "An example."},
}
_TASK: Final[dict[str, object]] = {"callId": "call_2", "agent": "researcher", "prompt": "An example of a task."}
_WORK: Final[dict[str, object]] = {
    "title": "An example of a task.",
    "source": "user",
    "workspaceId": "default",
    "scheduleId": None,
    "remediates": None,
    "attempt": 1,
    "maxAttempts": 3,
}
EXAMPLES: Final[dict[HookEvent, dict[str, object]]] = {
    "SessionStart": {},
    "UserPromptSubmit": {"prompt": "An example of what a person says."},
    "PreToolUse": _CALL,
    "PostToolUse": {**_CALL, "output": "An example of a result."},
    "PostToolUseFailure": {**_CALL, "output": "An example of an error."},
    "SubagentStart": _TASK,
    "SubagentStop": {**_TASK, "result": "An example of a result.", "failed": False},
    "TaskStart": _WORK,
    "TaskStop": {
        **_WORK,
        "outcome": "failed",
        "state": "queued",
        "errorClass": "provider",
        "error": "An example of an error.",
        "output": "",
    },
    "Stop": {"answer": "An example of an answer."},
    "SessionEnd": {},
}


class HookNotFoundError(NotFoundError):
    """There is no hook with this id."""


class TooManyHooksError(ConflictError):
    """There are as many hooks as there may be. Delete one first."""

    code = "too_many_hooks"


@handlers.answers(ListHooks)
async def list_hooks(deps: ChatDeps, query: ListHooks) -> HookList:
    """Return every hook in the order in which they run, and where they may be."""
    async with deps.pool.acquire() as conn:
        items = await store.LIST.all(conn, MOST_HOOKS)
    origins = sorted(map(str, deps.hooks.origins))
    return HookList(items=items, origins=origins, commands_problem=await deps.hooks.commands.problem())


@handlers.answers(CreateHook)
async def create_hook(deps: ChatDeps, command: CreateHook) -> HookView:
    """Store the hook; the command's id is the hook's, so a replay finds it."""
    fields = await _checked(deps, command.fields, command.sealed_secret)
    async with deps.outbox.transaction() as conn:
        await store.LOCK_TABLE.run(conn)
        stored = await store.GET.first(conn, command.command_id)
        if stored is not None:
            _refuse_another(stored, fields, signs=command.sealed_secret is not None)
            return stored
        if await store.COUNT.value(conn) >= MOST_HOOKS:
            raise TooManyHooksError
        await store.INSERT.run(conn, command.command_id, *store.columns_of(fields))
        if command.sealed_secret is not None:
            await _keep_secret(deps, conn, command.command_id, command.sealed_secret)
        return await _told(deps, conn, command.command_id)


def _refuse_another(stored: HookView, asked: HookFields, *, signs: bool) -> None:
    """Raise KeyUsedError when the stored hook was made by another command; after a change of it nobody can tell."""
    as_made = stored.revision == 0
    if as_made and (store.columns_of(stored) != store.columns_of(asked) or stored.has_secret != signs):
        raise KeyUsedError


@handlers.answers(UpdateHook)
async def update_hook(deps: ChatDeps, command: UpdateHook) -> HookView:
    """Change the given fields; what comes of it must be a hook again."""
    changes = given_fields(command.changes, nullable=())
    async with deps.outbox.transaction() as conn:
        stored = await store.LOCK.first(conn, command.hook_id)
        if stored is None:
            raise HookNotFoundError
        if stored.revision != command.changes.revision:
            raise RevisionConflictError(extra={"hook": stored.wire()})
        fields = await _checked(deps, _merged(stored, changes), command.sealed_secret, stored.argv)
        await store.UPDATE.run(conn, stored.id, *store.columns_of(fields))
        if command.sealed_secret is not None:
            await _keep_secret(deps, conn, stored.id, command.sealed_secret)
        elif "sealed_secret" in command.model_fields_set:
            await secrets.DROP.run(conn, RESOURCE, stored.id)
        return await _told(deps, conn, stored.id)


@handlers.answers(DeleteHook)
async def delete_hook(deps: ChatDeps, command: DeleteHook) -> DeletedView:
    """Delete the hook and its secret."""
    async with deps.outbox.transaction() as conn:
        revision = await store.DELETE.first(conn, command.hook_id)
        if revision is None:
            raise HookNotFoundError
        await secrets.DROP.run(conn, RESOURCE, command.hook_id)
        event = HookDeleted(aggregate_id=command.hook_id, version=revision + 1, hook_id=command.hook_id)
        await deps.outbox.add(conn, event)
    return DeletedView(id=command.hook_id)


@handlers.answers(TryHook)
async def try_hook(deps: ChatDeps, command: TryHook) -> HookTrialView:
    """Send the hook an example of its event, marked as such."""
    async with deps.pool.acquire() as conn:
        hook = await store.STORED.first(conn, command.hook_id)
    if hook is None:
        raise HookNotFoundError
    if deps.hooks.trials.locked():
        raise RateLimitedError("Other hooks are being tried. Try again in a moment.", retry_after_s=5)
    hook = hook.model_copy(update={"timeout_ms": min(hook.timeout_ms, LONGEST_TRIAL_MS)})
    example = EXAMPLES[hook.event]
    subject = str(example.get("tool") or example.get("agent") or "")
    told = {**event_body(hook.event, subject, example), "test": True}
    run_id = new_id()
    async with deps.hooks.trials:
        outcome = await deps.hooks.ask(hook, run_id, told)
    return HookTrialView(
        status=outcome.status,
        decision=outcome.decision,
        reason=outcome.reason,
        sent=sent_to(hook, run_id, told),
        output=outcome.output,
        duration_ms=outcome.duration_ms,
    )


@handlers.answers(ListHookRuns)
async def list_runs(deps: ChatDeps, query: ListHookRuns) -> HookRunList:
    """Return one page of a session's audit, the oldest first."""
    async with deps.pool.acquire() as conn:
        if await sessions.GET.first(conn, query.session_id) is None:
            raise SessionNotFoundError
        return await audit_page(
            conn, store.AUDIT, query.session_id, turn_id=query.turn_id, cursor=query.cursor, limit=query.limit
        )


def _merged(stored: HookView, changes: dict[str, object]) -> HookFields:
    kept = {name: getattr(stored, name) for name in HookFields.model_fields}
    if "event" in changes and "on_failure" not in changes:
        # What a failure means depends on the event; the default of the new one holds, unless it is said.
        kept["on_failure"] = None
    return HookFields.model_validate({**kept, **changes}, by_name=True)


async def _checked(
    deps: ChatDeps, fields: HookFields, secret: str | None, known_argv: Sequence[str] = ()
) -> HookFields:
    """Return the fields, `on_failure` decided; raises InvalidInputError naming the one that cannot be.

    A program that is `known_argv` is not looked for: a hook whose program is gone can be renamed and turned off.
    """
    checked_matcher(fields.event, fields.matcher)
    if fields.kind == "http":
        if fields.argv:
            raise InvalidInputError("argv is of the kind command alone", field="argv")
        checked_url(fields.url, deps.hooks.origins)
    else:
        await _check_command(deps, fields, secret, known_argv)
    return fields.model_copy(update={"on_failure": checked_on_failure(fields.event, fields.on_failure)})


async def _check_command(deps: ChatDeps, fields: HookFields, secret: str | None, known_argv: Sequence[str]) -> None:
    if fields.url:
        raise InvalidInputError("url is of the kind http alone", field="url")
    if secret is not None:
        raise InvalidInputError(
            "secret is of the kind http alone: a program is sent nothing over a wire", field="secret"
        )
    if not fields.argv or not fields.argv[0]:
        raise InvalidInputError("argv must name a program", field="argv")
    problem = await deps.hooks.commands.problem()
    if problem is not None:
        raise InvalidInputError(problem, field="kind")
    if fields.argv != known_argv and (problem := deps.hooks.commands.program_problem(fields.argv)) is not None:
        raise InvalidInputError(problem, field="argv")


async def _keep_secret(deps: ChatDeps, conn: Connection, hook_id: str, box: str) -> None:
    value = deps.keyring.received(box, HOOK_SECRET_PURPOSE)
    if not SHORTEST_SECRET <= len(value.get_secret_value()) <= LONGEST_SECRET:
        raise InvalidInputError(
            f"secret must have between {SHORTEST_SECRET} and {LONGEST_SECRET} characters", field="secret"
        )
    sealed = deps.keyring.seal(value, RESOURCE, hook_id)
    await secrets.PUT.run(conn, RESOURCE, hook_id, deps.keyring.key_id(), sealed)


async def _told(deps: ChatDeps, conn: Connection, hook_id: str) -> HookView:
    hook = await store.GET.one(conn, hook_id)
    await deps.outbox.add(conn, HookChanged(aggregate_id=hook.id, version=hook.revision, hook=hook))
    return hook
