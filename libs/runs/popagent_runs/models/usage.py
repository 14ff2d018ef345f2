"""One row a model call, failed ones too; a database that is away is waited for, and no run waits for it."""

from __future__ import annotations

from typing import Final

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_models.usage import UsageRecord
from popagent_runs.late_rows import LateRows
from popagent_telemetry import metrics

DROPPED: Final = metrics.counter(
    "popagent_model_usage_dropped_total",
    "Model calls that are missing in model_usage, with the tokens they cost",
)
INSERT: Final = Query(
    None,
    """
    insert into model_usage (
        id, turn_id, agent_id, trace_id, requested_model, route_model, source, input_tokens, cached_tokens,
        output_tokens, reasoning_tokens, estimated, queue_ms, first_token_ms, duration_ms, finish_reason, error_class,
        retries, created_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
    on conflict (id) do nothing
    """,
)


class UsageTable(LateRows[UsageRecord]):
    """Keeps usage records in this service's schema."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool, INSERT, _values, what="usage records", dropped=DROPPED)

    async def record(self, record: UsageRecord) -> None:
        """Store one record, now or when the database is back."""
        self.add([record])
        await self.write()


def _values(record: UsageRecord) -> tuple[object, ...]:
    return (
        record.id,
        record.turn_id,
        record.agent_id or "",
        record.trace_id,
        record.requested_model,
        record.route_model,
        record.source,
        record.input_tokens,
        record.cached_tokens,
        record.output_tokens,
        record.reasoning_tokens,
        record.estimated,
        record.queue_ms,
        record.ttft_ms,
        record.duration_ms,
        record.finish_reason,
        record.error_class,
        record.retries,
        record.created_at,
    )
