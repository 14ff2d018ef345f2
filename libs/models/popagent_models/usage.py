"""What a call cost: one record a call, failed ones included, handed to whoever keeps the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from popagent_kit.clock import now
from popagent_kit.ids import new_id


@dataclass(slots=True)
class UsageRecord:
    """A row of `model_usage`. `ttft_ms` counts from the admitted request to the first delta, None when none came."""

    requested_model: str
    route_model: str
    source: str
    trace_id: str | None = None
    turn_id: str | None = None
    agent_id: str | None = None
    task_id: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    queue_ms: int = 0
    ttft_ms: int | None = None
    duration_ms: int = 0
    finish_reason: str | None = None
    error_class: str | None = None
    retries: int = 0
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=now)


class UsageSink(Protocol):
    """Keeps usage records; a failure is logged by the caller and costs the turn nothing."""

    async def record(self, record: UsageRecord) -> None:
        """Keep one record."""
        ...
