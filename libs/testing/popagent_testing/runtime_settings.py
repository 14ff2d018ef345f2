"""Agent runtime settings for tests that need some and care about few."""

from __future__ import annotations

from typing import Any

from popagent_kit.clock import now
from popagent_proto.chat.settings import AgentRuntimeView


def agent_runtime(**changes: Any) -> AgentRuntimeView:
    """Return valid settings with `changes`, named as the fields are."""
    settings = AgentRuntimeView(
        model_source="auto",
        default_model=None,
        supervisor_max_steps=16,
        specialist_max_steps=16,
        concurrent_tool_calls=4,
        processor_retries=0,
        final_response_feedback="Answer now.",
        delegation_context_messages=10,
        delegation_result_characters=2_000,
        delegation_failure_text="It failed.",
        delegation_truncation_text="Cut.",
        background_concurrency=1,
        background_poll_ms=1_000,
        task_timeout_ms=60_000,
        revision=1,
        updated_at=now(),
    )
    return settings.model_copy(update=changes)
