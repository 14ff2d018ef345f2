"""Read and change the agent runtime settings."""

from __future__ import annotations

from dataclasses import replace

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.models.choice import model_choice
from popagent_chat.runtime_settings import store
from popagent_kit.errors import RevisionConflictError
from popagent_proto.chat.settings import (
    AgentRuntimeChanged,
    AgentRuntimeView,
    GetAgentRuntime,
    PatchAgentRuntime,
)
from popagent_proto.patches import given_fields

handlers = Handlers[ChatDeps]()
NULLABLE = frozenset({"default_model"})


@handlers.answers(GetAgentRuntime)
async def get_agent_runtime(deps: ChatDeps, query: GetAgentRuntime) -> AgentRuntimeView:
    """Return the stored settings."""
    async with deps.pool.acquire() as conn:
        return await store.stored_settings(conn)


@handlers.answers(PatchAgentRuntime)
async def patch_agent_runtime(deps: ChatDeps, command: PatchAgentRuntime) -> AgentRuntimeView:
    """Change the given fields; the model must be one that the catalogue knows."""
    changes = given_fields(command.body, nullable=NULLABLE)
    model = changes.get("default_model")
    if isinstance(model, str):
        async with deps.pool.acquire() as conn:
            stored_choice = await model_choice(conn)
        # A source that is changed along is the one that must offer it.
        choice = replace(stored_choice, runtime=stored_choice.runtime.model_copy(update=changes))
        await deps.models.require_known(model, choice, field="defaultModel")
    async with deps.outbox.transaction() as conn:
        stored = await store.LOCK.first(conn) or await store.stored_settings(conn)
        if command.body.revision not in (None, stored.revision):
            raise RevisionConflictError(extra={"settings": stored.wire()})
        wanted = stored.model_copy(update=changes)
        saved = await store.UPDATE.one(
            conn,
            wanted.model_source,
            wanted.default_model,
            wanted.supervisor_max_steps,
            wanted.specialist_max_steps,
            wanted.concurrent_tool_calls,
            wanted.processor_retries,
            wanted.final_response_feedback,
            wanted.delegation_context_messages,
            wanted.delegation_result_characters,
            wanted.delegation_failure_text,
            wanted.delegation_truncation_text,
            wanted.background_concurrency,
            wanted.background_poll_ms,
            wanted.task_timeout_ms,
        )
        event = AgentRuntimeChanged(aggregate_id="agent-runtime", version=saved.revision, settings=saved)
        await deps.outbox.add(conn, event)
    deps.next_turn_changed()
    return saved
