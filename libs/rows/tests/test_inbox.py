from __future__ import annotations

import asyncio
from datetime import timedelta

from popagent_db.pool import Pool
from popagent_rows import inbox


async def handle(pool: Pool, event_id: str, *, fail: bool = False) -> None:
    async with pool.transaction() as conn:
        if not await inbox.once(conn, "gateway-events", event_id):
            return
        await asyncio.sleep(0.01)
        await conn.execute("insert into jobs (id, kind) values (gen_random_uuid()::text, $1)", event_id)
        if fail:
            raise RuntimeError("handler failed")


async def effects(pool: Pool, event_id: str) -> int:
    return int(await pool.fetchval("select count(*) from jobs where kind = $1", event_id))


async def test_a_message_delivered_three_times_has_one_effect(pool: Pool) -> None:
    await asyncio.gather(*(handle(pool, "e1") for _ in range(2)))
    await handle(pool, "e1")

    assert await effects(pool, "e1") == 1


async def test_a_handler_that_failed_is_not_taken_for_done(pool: Pool) -> None:
    failed = await asyncio.gather(handle(pool, "e1", fail=True), return_exceptions=True)
    await handle(pool, "e1")

    assert isinstance(failed[0], RuntimeError)
    assert await effects(pool, "e1") == 1


async def test_each_consumer_counts_for_itself(pool: Pool) -> None:
    async with pool.transaction() as conn:
        seen = [await inbox.once(conn, consumer, "e1") for consumer in ("one", "two", "one")]

    assert seen == [True, True, False]


async def test_old_ids_are_forgotten_and_young_ones_kept(pool: Pool) -> None:
    await handle(pool, "old")
    await handle(pool, "young")
    await pool.execute("update inbox set seen_at = now() - interval '9 days' where event_id = 'old'")

    gone = await inbox.prune(pool)
    again = await inbox.prune(pool, timedelta(days=8))

    assert (gone, again) == (1, 0)
    assert await pool.fetchval("select string_agg(event_id, ',') from inbox") == "young"
