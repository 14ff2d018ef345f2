"""Work of a turn that can be done again waits for PostgreSQL, for as long as the turn is ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from popagent_chat.turns.store import LeasedTurn
from popagent_kit.errors import UnavailableError
from popagent_rows.leased import Lease

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_S: Final = 0.2


async def while_held(lease: Lease[LeasedTurn], work: Callable[[], Awaitable[T]], what: str) -> T:
    """Return what `work` gives once the database answers; the log says that `what` waits.

    Raises:
        LeaseLostError: It did not come back in time.
    """
    while True:
        try:
            return await work()
        except UnavailableError as error:
            lease.check()
            log.info("%s waits for the database", what, extra={"turn": lease.row.id, "reason": error.message})
            await asyncio.sleep(RETRY_S)
