"""One row a model call, failed ones too."""

from __future__ import annotations

from typing import Final

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_models.usage import UsageRecord

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


class UsageTable:
    """Keeps usage records in this service's schema."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, record: UsageRecord) -> None:
        """Store one record."""
        async with self._pool.acquire() as conn:
            await INSERT.run(
                conn,
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
