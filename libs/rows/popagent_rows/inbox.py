"""Events whose effect is already stored: at-least-once delivery becomes one effect."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from popagent_db.pool import Connection, Pool
from popagent_db.query import Query
from popagent_rows import pruning
from popagent_rows.pulse import Pulse

# One day longer than the event stream keeps messages, so that no redelivery finds its id forgotten.
KEPT: Final = timedelta(days=8)
PRUNE_PERIOD_S: Final = 3_600.0

NOTE: Final = Query(None, "insert into inbox (consumer, event_id) values ($1, $2) on conflict do nothing")
PRUNE: Final = Query(
    None,
    """
    delete from inbox
    where (consumer, event_id) in (
        select consumer, event_id from inbox where seen_at < now() - $1::interval limit $2
    )
    """,
)


async def once(connection: Connection, consumer: str, event_id: str) -> bool:
    """Tell whether this is the first time; call it in the transaction of the effect.

    A second delivery that runs at the same time waits here until the first has committed or rolled back.
    """
    return await NOTE.run(connection, consumer, event_id) == 1


async def prune(pool: Pool, kept: timedelta = KEPT) -> int:
    """Forget what is older than `kept`, and return how many."""
    return await pruning.prune(pool, PRUNE, kept)


def keep_pruned(pool: Pool, pulse: Pulse) -> None:
    """Prune each hour."""
    pulse.every(PRUNE_PERIOD_S, "inbox prune", lambda: prune(pool))
