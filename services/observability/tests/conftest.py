from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import pytest

from popagent_db.pool import Pool, open_pool
from popagent_kit import json
from popagent_kit.clock import now
from popagent_observability.records import Batch, Window, parse_batch
from popagent_observability.storing import Storing
from popagent_testing.suite_bus import connect_as, suite_nats

__all__ = ["connect_as", "suite_nats"]

TRACE = "0af7651916cd43dd8448eb211c80319c"
RETENTION_DAYS = 14


def nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000


def span_id(number: int) -> str:
    return f"{number:016x}"


def trace_id(number: int) -> str:
    return f"{number + 1:032x}"


def span(number: int = 1, parent: int | None = None, *, running: bool = False, **fields: Any) -> dict[str, Any]:
    """A span record as services send it: it took 10 ms."""
    began = nanoseconds(fields.pop("at", None) or now())
    record = {
        "traceId": TRACE,
        "spanId": span_id(number),
        "parentId": None if parent is None else span_id(parent),
        "name": f"work {number}",
        "kind": "internal",
        "startedAt": began,
        "endedAt": None if running else began + 10_000_000,
        "status": "unset",
        "statusMessage": None,
        "attributes": {},
        "events": [],
        "links": [],
    }
    return record | fields


def log_line(message: str, **fields: Any) -> dict[str, Any]:
    record = {
        "at": nanoseconds(fields.pop("at", None) or now()),
        "level": "info",
        "logger": "popagent_chat",
        "message": message,
        "attributes": {},
        "traceId": TRACE,
        "spanId": span_id(1),
    }
    return record | fields


def encoded(spans: list[Any], logs: list[Any] | None = None, **fields: Any) -> bytes:
    """A batch as it travels."""
    head = {"service": "chat", "instance": "i1", "sentAt": nanoseconds(now()), "dropped": 0}
    return json.dumps(head | {"spans": spans, "logs": logs or []} | fields)


def batch(*spans: Any, logs: list[Any] | None = None, service: str = "chat", **fields: Any) -> Batch:
    """A batch as it is stored."""
    moment = now()
    return parse_batch(service, encoded(list(spans), logs, **fields), Window.around(moment, RETENTION_DAYS), moment)


@pytest.fixture
def dsn(service_database: Callable[[str], str]) -> str:
    return service_database("observability")


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    opened = await open_pool(dsn, application_name="test", max_size=6)
    yield opened
    await opened.close()


@pytest.fixture
def storing(pool: Pool) -> Storing:
    return Storing(pool)
