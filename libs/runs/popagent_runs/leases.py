"""What the loop asks of its row: whether it is still ours, and to write down what it is about to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from popagent_agent.ports import LeaseLostError as RunLostError
from popagent_agent.ports import ToolCall
from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_kit import json
from popagent_kit.text import excerpt
from popagent_rows.leased import Lease, LeasedRow, LeaseLostError
from popagent_telemetry import redact_value

INTENT_ARGUMENTS: Final = 8_000
Row = TypeVar("Row", bound=LeasedRow)


@contextmanager
def as_run() -> Iterator[None]:
    """Raise the loop's LeaseLostError for ours: the loop knows no rows."""
    try:
        yield
    except LeaseLostError as error:
        raise RunLostError(error.message) from error


@contextmanager
def as_held() -> Iterator[None]:
    """Raise our LeaseLostError for the loop's."""
    try:
        yield
    except RunLostError as error:
        raise LeaseLostError(error.message) from error


class RunLease(Generic[Row]):
    """The lease as the loop knows it."""

    def __init__(self, lease: Lease[Row]) -> None:
        self._lease = lease

    def check(self) -> None:
        """Raise the loop's LeaseLostError from the local deadline on."""
        with as_run():
            self._lease.check()


class Intents(Generic[Row]):
    """Writes the intent row of a call that may have an effect; `insert` takes step, call id, name and arguments."""

    def __init__(self, pool: Pool, lease: Lease[Row], insert: Query[None]) -> None:
        self._pool = pool
        self._lease = lease
        self._insert = insert

    async def record(self, step: int, call: ToolCall) -> None:
        """Store the row under the fence; no row, no call."""
        arguments = excerpt(json.dumps(redact_value(call.arguments)).decode(), INTENT_ARGUMENTS)
        with as_run():
            async with self._pool.acquire() as conn:
                await self._lease.run(conn, self._insert, step, call.call_id, call.name, arguments)
