from __future__ import annotations

import pytest

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_rows import inbox, jobs, outbox
from popagent_rows.pruning import BATCH


@pytest.mark.parametrize(
    ("statement", "time"), [(outbox.PRUNE, "sent_at"), (inbox.PRUNE, "seen_at"), (jobs.PRUNE, "updated_at")]
)
async def test_what_is_old_is_found_by_its_time(pool: Pool, statement: Query[None], time: str) -> None:
    async with pool.transaction() as conn:
        await conn.execute("set local enable_seqscan = off")
        plan = await conn.fetch(f"explain (costs off) {statement.sql}", inbox.KEPT, BATCH)

    assert any(f"Index Cond: ({time} < (now() -" in line[0] for line in plan)
