"""Runtime settings of the agents: one row, read at the start of every run."""

from __future__ import annotations

from typing import ClassVar, Literal

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


class AgentRuntimePatch(Wire):
    """Fields to change; an absent one stays. `revision`, when sent, must be the stored one."""

    revision: int | None = Field(default=None, ge=0)
    model_source: ModelSource | None = Field(
        default=None, description="auto: the configured endpoint, else the embedded model; router or local: only that."
    )
    default_model: Text | None = Field(
        default=None, max_length=200, description="null: POPAGENT_MODEL, else the first model of the catalogue."
    )
    supervisor_max_steps: int | None = Field(default=None, ge=1, le=128, description="Model calls a turn.")
    specialist_max_steps: int | None = Field(
        default=None,
        ge=1,
        le=128,
        description="Model calls a delegated run. Higher ceilings for background work need a longer taskTimeoutMs.",
    )
    concurrent_tool_calls: int | None = Field(default=None, ge=1, le=32)
    processor_retries: int | None = Field(default=None, ge=0, le=10)
    final_response_feedback: Text | None = Field(
        default=None, min_length=1, max_length=4_000, description="What the model is told before its last step."
    )
    delegation_context_messages: int | None = Field(default=None, ge=0, le=200)
    delegation_result_characters: int | None = Field(default=None, ge=200, le=200_000)
    delegation_failure_text: Text | None = Field(default=None, min_length=1, max_length=2_000)
    delegation_truncation_text: Text | None = Field(default=None, min_length=1, max_length=2_000)
    background_concurrency: int | None = Field(default=None, ge=1, le=32)
    background_poll_ms: int | None = Field(default=None, ge=100, le=600_000)
    task_timeout_ms: int | None = Field(default=None, ge=1_000, le=86_400_000, description="Wall clock of a task.")


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
