"""Work of a run that can be done again waits for PostgreSQL, for as long as its row is ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from popagent_kit.errors import UnavailableError
from popagent_rows.leased import Lease, LeasedRow

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = TypeVar("Row", bound=LeasedRow)

RETRY_S: Final = 0.2


async def while_held(lease: Lease[Row], work: Callable[[], Awaitable[T]], what: str) -> T:
    """Return what `work` gives once the database answers; the log says that `what` waits.

    Raises:
        LeaseLostError: It did not come back in time.
    """
    while True:
        try:
            return await work()
        except UnavailableError as error:
            lease.check()
            log.info("%s waits for the database", what, extra={"row": lease.row.id, "reason": error.message})
            await asyncio.sleep(RETRY_S)
