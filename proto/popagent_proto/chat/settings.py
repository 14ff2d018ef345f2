"""Runtime settings of the agents: one row, read at the start of every run."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Moment, Query, Text, View, Wire

ModelSource = Literal["auto", "router", "local"]


class AgentRuntimeView(View):
    """The stored settings; bounds are stated on AgentRuntimePatch."""

    model_source: ModelSource
    default_model: str | None
    supervisor_max_steps: int
    specialist_max_steps: int
    concurrent_tool_calls: int
    processor_retries: int
    final_response_feedback: str
    delegation_context_messages: int
    delegation_result_characters: int
    delegation_failure_text: str
    delegation_truncation_text: str
    background_concurrency: int
    background_poll_ms: int
    task_timeout_ms: int
    revision: int
    updated_at: Moment


SEEDED: Final = "x-seeded"


def _seeded(value: Any, *, description: str, **bounds: Any) -> Any:
    """Declare a field that may be left out; `value` is what a new installation begins with."""
    return Field(default=None, description=description, json_schema_extra={SEEDED: value}, **bounds)


class AgentRuntimePatch(Wire):
    """Fields to change; an absent one stays. `revision`, when sent, must be the stored one.

    `x-seeded` in the schema is the value that a new installation begins with.
    """

    revision: int | None = Field(default=None, ge=0, description="The one you saw last.")
    model_source: ModelSource | None = _seeded(
        "auto",
        description="auto: the connected server, else the embedded model; router or local: only the one or the other.",
    )
    default_model: Text | None = _seeded(
        None,
        max_length=200,
        description="Answers what names no model; null: POPAGENT_MODEL, else the first model of the server.",
    )
    supervisor_max_steps: int | None = _seeded(32, ge=1, le=128, description="Model calls a turn.")
    specialist_max_steps: int | None = _seeded(
        24,
        ge=1,
        le=128,
        description="Model calls a delegated run. Higher ceilings for background work need a longer taskTimeoutMs.",
    )
    concurrent_tool_calls: int | None = _seeded(
        4, ge=1, le=32, description="Tool calls of one step that run at the same time."
    )
    processor_retries: int | None = _seeded(
        2, ge=0, le=10, description="How often a hook may send the agent back to its answer in one turn."
    )
    final_response_feedback: Text | None = _seeded(
        "No more tools can be used in this turn. Answer the person's last message now from what you found out, "
        "and say openly what is missing or was not done.",
        min_length=1,
        max_length=4_000,
        description="What the model is told before its last step.",
    )
    delegation_context_messages: int | None = _seeded(
        12, ge=0, le=200, description="Newest messages of the chat that a specialist is given."
    )
    delegation_result_characters: int | None = _seeded(
        12_000, ge=200, le=200_000, description="Longest result of a specialist, in characters; the rest is cut."
    )
    delegation_failure_text: Text | None = _seeded(
        "The specialist could not finish. Go on without its result, or try a smaller request.",
        min_length=1,
        max_length=2_000,
        description="What the orchestrator is told when a specialist failed.",
    )
    delegation_truncation_text: Text | None = _seeded(
        "The result was cut here because it was too long.",
        min_length=1,
        max_length=2_000,
        description="What stands at the end of a result that was cut.",
    )
    background_concurrency: int | None = _seeded(
        2, ge=1, le=32, description="Background tasks that run at the same time."
    )
    background_poll_ms: int | None = _seeded(
        1_000,
        ge=100,
        le=600_000,
        description="How often background tasks are looked for whose time has come, as after the pause before another "
        "attempt, in milliseconds. A new one is noticed at once.",
    )
    task_timeout_ms: int | None = _seeded(
        1_800_000, ge=1_000, le=86_400_000, description="Wall clock of a task, in milliseconds."
    )


def seeded_agent_runtime() -> dict[str, Any]:
    """Return what a new installation begins with, by field name; the migration stores the same."""
    extras = {name: field.json_schema_extra for name, field in AgentRuntimePatch.model_fields.items()}
    return {name: extra[SEEDED] for name, extra in extras.items() if isinstance(extra, dict)}


class GetAgentRuntime(Query[AgentRuntimeView]):
    """A missing row is a configuration error; nothing recreates it."""

    subject: ClassVar = "popagent.chat.qry.settings-agent-runtime.v1"


class PatchAgentRuntime(Command[AgentRuntimeView]):
    """Change settings; the next run uses them."""

    subject: ClassVar = "popagent.chat.cmd.settings-agent-runtime.v1"

    command_id: Id
    body: AgentRuntimePatch


class AgentRuntimeChanged(Event):
    """The next run uses these."""

    subject: ClassVar = "popagent.chat.evt.settings-agent-runtime.v1"

    settings: AgentRuntimeView
