"""What the loop asks of a turn: whether it is still ours, and to write down what it is about to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from popagent_agent.ports import LeaseLostError as RunLostError
from popagent_agent.ports import ToolCall
from popagent_chat.turns import store
from popagent_chat.turns.store import LeasedTurn
from popagent_db.pool import Pool
from popagent_kit import json
from popagent_kit.text import excerpt
from popagent_rows.leased import Lease, LeaseLostError
from popagent_telemetry import redact_value

INTENT_ARGUMENTS: Final = 8_000


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


class RunLease:
    """The lease as the loop knows it."""

    def __init__(self, lease: Lease[LeasedTurn]) -> None:
        self._lease = lease

    def check(self) -> None:
        """Raise the loop's LeaseLostError from the local deadline on."""
        with as_run():
            self._lease.check()


class Intents:
    """Writes the intent row of a call that may have an effect."""

    def __init__(self, pool: Pool, lease: Lease[LeasedTurn]) -> None:
        self._pool = pool
        self._lease = lease

    async def record(self, step: int, call: ToolCall) -> None:
        """Store the row under the fence; no row, no call."""
        arguments = excerpt(json.dumps(redact_value(call.arguments)).decode(), INTENT_ARGUMENTS)
        with as_run():
            async with self._pool.acquire() as conn:
                await self._lease.run(conn, store.INTENT, step, call.call_id, call.name, arguments)
