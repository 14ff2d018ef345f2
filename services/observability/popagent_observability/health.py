"""How much the store holds, and how far it is behind the bus."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_observability import reading, store
from popagent_observability.deps import ObservabilityDeps
from popagent_proto import matrix
from popagent_proto.observability import GetStoreHealth, StoreHealthView

CONSUMER: Final = "observability-telemetry"

handlers: Handlers[ObservabilityDeps] = Handlers()


@handlers.answers(GetStoreHealth)
async def get_store_health(deps: ObservabilityDeps, _: GetStoreHealth) -> StoreHealthView:
    """Return counts, size and backlog; raises UnavailableError when PostgreSQL or the stream does not answer."""
    pending = await deps.bus.backlog(matrix.TELEMETRY, CONSUMER)
    async with deps.pool.acquire() as connection:
        contents = await reading.CONTENTS.one(connection)
        size = await store.SIZE_BYTES.value(connection)
    return StoreHealthView(
        ready=True,
        spans=contents.spans,
        logs=contents.logs,
        size_bytes=size,
        oldest_at=contents.oldest_at,
        newest_at=contents.newest_at,
        pending_batches=pending,
    )
