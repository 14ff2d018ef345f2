"""The one row of agent runtime settings."""

from __future__ import annotations

from typing import Final

from popagent_db.pool import Connection
from popagent_db.query import Query
from popagent_kit.errors import ConfigurationError
from popagent_proto.chat.settings import AgentRuntimeView


class SettingsMissingError(ConfigurationError):
    """The agent runtime settings are missing from the database. Restore a backup."""


GET: Final = Query(
    AgentRuntimeView,
    """
    select model_source, default_model, supervisor_max_steps, specialist_max_steps, concurrent_tool_calls,
        processor_retries, final_response_feedback, delegation_context_messages, delegation_result_characters,
        delegation_failure_text, delegation_truncation_text, background_concurrency, background_poll_ms,
        task_timeout_ms, revision, updated_at
    from agent_runtime_settings
    """,
)

LOCK: Final = Query(AgentRuntimeView, f"{GET.sql} for update")

UPDATE: Final = Query(
    AgentRuntimeView,
    """
    update agent_runtime_settings
    set model_source = $1, default_model = $2, supervisor_max_steps = $3, specialist_max_steps = $4,
        concurrent_tool_calls = $5, processor_retries = $6, final_response_feedback = $7,
        delegation_context_messages = $8, delegation_result_characters = $9, delegation_failure_text = $10,
        delegation_truncation_text = $11, background_concurrency = $12, background_poll_ms = $13,
        task_timeout_ms = $14, revision = revision + 1, updated_at = clock_timestamp()
    returning model_source, default_model, supervisor_max_steps, specialist_max_steps, concurrent_tool_calls,
        processor_retries, final_response_feedback, delegation_context_messages, delegation_result_characters,
        delegation_failure_text, delegation_truncation_text, background_concurrency, background_poll_ms,
        task_timeout_ms, revision, updated_at
    """,
)


async def stored_settings(conn: Connection) -> AgentRuntimeView:
    """Return the settings.

    Raises:
        SettingsMissingError: The row is missing; nothing recreates it.
    """
    found = await GET.first(conn)
    if found is None:
        raise SettingsMissingError
    return found
