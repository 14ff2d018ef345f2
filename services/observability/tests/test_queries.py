from __future__ import annotations

import popagent_observability
from popagent_db.pool import Pool
from popagent_db.query import prepare_all


async def test_every_statement_fits_the_migrated_schema(pool: Pool) -> None:
    async with pool.acquire() as connection:
        count = await prepare_all(connection, popagent_observability)

    assert count >= 15
