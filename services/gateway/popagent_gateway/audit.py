"""Who changed what: every mutation that passed the door is appended to audit_log, behind the answer's back."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from popagent_db.pool import Pool
from popagent_gateway import audit_store as store
from popagent_gateway.door import SAFE_METHODS
from popagent_gateway.observed import route_of
from popagent_kit.clock import now
from popagent_kit.errors import AppError
from popagent_kit.text import one_line
from popagent_telemetry import metrics, redact
from popagent_telemetry.tracing import current_trace_id

log = logging.getLogger(__name__)

QUEUE_ENTRIES: Final = 10_000
BATCH_ENTRIES: Final = 500
# Entries of so long a time go together, and the first word of an answer goes before its entry.
GATHER_S: Final = 0.02
RETRY_S: Final = 2.0
RETENTION_S: Final = 3_600.0
RETENTION_ROWS: Final = 5_000
FLUSH_S: Final = 2.0

DROPPED: Final = metrics.counter(
    "popagent_audit_dropped_total", "Changes that are missing in audit_log because the database was away too long"
)


@dataclass(frozen=True)
class Entry:
    """One change, or one attempt at it; `status` tells which."""

    at: datetime
    key_id: str | None
    method: str
    route: str
    path: str
    status: int
    trace_id: str | None


class AuditLog:
    """A bounded queue and its writer; `note` never waits and never fails."""

    def __init__(self, pool: Pool, keep_days: int, *, queue_entries: int = QUEUE_ENTRIES) -> None:
        self._pool = pool
        self._keep_days = keep_days
        self._waiting: list[Entry] = []
        self._queue_entries = queue_entries
        self._wake = asyncio.Event()

    def note(self, entry: Entry) -> None:
        """Queue the entry; with a full queue it is counted as dropped, since a chat must not wait for its log."""
        if len(self._waiting) >= self._queue_entries:
            DROPPED.inc()
            return
        self._waiting.append(entry)
        self._wake.set()

    async def run(self) -> None:
        """Write and clean up until cancelled; what is queued then is for `flush`."""
        next_clean_up = 0.0
        clock = asyncio.get_running_loop().time
        while True:
            try:
                if clock() >= next_clean_up:
                    await self._drop_old()
                    next_clean_up = clock() + RETENTION_S
                await self._write()
            except AppError as error:
                log.warning("the log of changes waits for the database: %s", error.message)
                await asyncio.sleep(RETRY_S)
                continue
            self._wake.clear()
            if self._waiting:
                continue
            try:
                async with asyncio.timeout_at(next_clean_up):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(GATHER_S)

    async def flush(self) -> None:
        """Write what is queued, within two seconds; what is left is counted as dropped."""
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._write()
        except (TimeoutError, AppError) as error:
            DROPPED.inc(len(self._waiting))
            log.warning("%d changes are not in audit_log: %s", len(self._waiting), error or "the database is slow")

    async def _write(self) -> None:
        while batch := self._waiting[:BATCH_ENTRIES]:
            columns = zip(
                *((e.at, e.key_id, e.method, e.route, e.path, e.status, e.trace_id) for e in batch), strict=True
            )
            async with self._pool.acquire() as conn:
                await store.APPEND.run(conn, *map(list, columns))
            del self._waiting[: len(batch)]

    async def _drop_old(self) -> None:
        while True:
            async with self._pool.acquire() as conn:
                dropped = await store.DROP_OLD.run(conn, self._keep_days, RETENTION_ROWS)
            if dropped < RETENTION_ROWS:
                return


class Audited:
    """ASGI middleware behind the door: notes every request that may have changed something, with its answer."""

    def __init__(self, app: ASGIApp, audit_log: AuditLog, key_id: str | None) -> None:
        self.app = app
        self.audit_log = audit_log
        self.key_id = key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the change when its answer begins: a stream may last for hours."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send)
            return

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.audit_log.note(
                    Entry(
                        at=now(),
                        key_id=self.key_id,
                        method=one_line(scope["method"], 16),
                        route=one_line(route_of(scope), 200),
                        path=one_line(redact(scope["path"].replace("\x00", "")), 400),
                        status=message["status"],
                        trace_id=current_trace_id(),
                    )
                )
            await send(message)

        await self.app(scope, receive, send_and_note)
