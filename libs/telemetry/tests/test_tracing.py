from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from popagent_kit import json
from popagent_kit.errors import NotFoundError
from popagent_telemetry import (
    Telemetry,
    current_trace_id,
    extract,
    inject,
    metrics,
    redaction,
    remote_context,
    set_up,
    span,
)
from popagent_telemetry.exporting import QUEUED_BATCHES, QUEUED_SPANS
from popagent_telemetry.redaction import register_secret
from popagent_telemetry.tracing import LONGEST_ATTRIBUTE


class Store:
    """Takes batches as the observability store would, or refuses them."""

    def __init__(self) -> None:
        self.batches: list[dict[str, Any]] = []
        self.refusing = False
        self.arrived = asyncio.Event()

    async def __call__(self, data: bytes) -> None:
        if self.refusing:
            raise ConnectionError("down")
        self.batches.append(json.loads(data))
        self.arrived.set()

    def spans(self) -> list[dict[str, Any]]:
        return [item for batch in self.batches for item in batch["spans"]]

    def logs(self) -> list[dict[str, Any]]:
        return [item for batch in self.batches for item in batch["logs"]]


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
async def telemetry(store: Store) -> AsyncIterator[Telemetry]:
    telemetry = set_up("chat", "one", store)
    yield telemetry
    await telemetry.stop()


async def test_a_running_span_is_seen_before_it_ends_and_again_after(store: Store, telemetry: Telemetry) -> None:
    with span("turn", {"turn.id": "t1"}):
        await asyncio.wait_for(store.arrived.wait(), 1.5)
        running = store.spans()
    await telemetry.flush()

    assert [item["endedAt"] for item in running] == [None]
    assert [item["endedAt"] is None for item in store.spans()] == [True, False]
    assert store.spans()[1]["attributes"] == {"turn.id": "t1"}


async def test_a_short_span_is_sent_once_with_its_parent(store: Store, telemetry: Telemetry) -> None:
    with span("outer"), span("inner", kind="client"):
        pass
    await telemetry.flush()

    inner, outer = store.spans()
    assert inner["parentId"] == outer["spanId"]
    assert inner["traceId"] == outer["traceId"]
    assert inner["kind"] == "client"


async def test_the_trace_goes_on_in_another_process(store: Store, telemetry: Telemetry) -> None:
    headers: dict[str, str] = {}
    with span("asks") as asking:
        inject(headers)
        trace_id = current_trace_id()

    with span("answers", parent=extract(headers), kind="consumer"):
        assert current_trace_id() == trace_id
    await telemetry.flush()

    assert store.spans()[1]["parentId"] == f"{asking.get_span_context().span_id:016x}"
    assert current_trace_id() is None


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        "00-zz-11-01",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        "ff-" + "a" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "b" * 16 + "-01-extra",
        "00-" + "A" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 33 + "-" + "b" * 16 + "-01",
        "x" * 10_000,
    ],
)
def test_a_malformed_traceparent_is_ignored(header: str) -> None:
    assert remote_context({"traceparent": header}) is None
    assert extract({"traceparent": header}) is None


async def test_an_unsampled_caller_does_not_hide_our_work(store: Store, telemetry: Telemetry) -> None:
    with span("work", parent=extract({"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-00"})):
        pass
    await telemetry.flush()

    assert [item["name"] for item in store.spans()] == ["work"]


async def test_a_defect_is_an_error_and_a_refusal_is_an_answer(store: Store, telemetry: Telemetry) -> None:
    with pytest.raises(ZeroDivisionError), span("defect"):
        _ = 1 / 0
    with pytest.raises(NotFoundError), span("refusal"):
        raise NotFoundError
    await telemetry.flush()

    defect, refusal = store.spans()
    assert (defect["status"], defect["attributes"]["error.type"]) == ("error", "ZeroDivisionError")
    assert (refusal["status"], refusal["attributes"]["error.type"]) == ("unset", "not_found")


async def test_spans_and_logs_leave_redacted_and_bounded(store: Store, telemetry: Telemetry) -> None:
    log = logging.getLogger("popagent.test")
    log.setLevel(logging.INFO)
    with suppress(ValueError), span("call sk-CANARY01234567", prompt="x" * 50_000, apiKey="CANARY"):
        log.info("token=CANARY0123 for %s", "postgres://u:CANARY@h/db", extra={"password": "CANARY"})
        raise ValueError("Bearer CANARY01234567")
    await telemetry.flush()

    assert "CANARY" not in str(store.batches)
    assert len(store.spans()[0]["attributes"]["prompt"]) == 8_192
    assert store.logs()[0]["traceId"] == store.spans()[0]["traceId"]


async def test_while_nothing_takes_telemetry_work_goes_on_and_the_oldest_is_dropped_and_counted(store: Store) -> None:
    telemetry = set_up("chat", "one")
    for number in range(QUEUED_SPANS + 10):
        with span(f"s{number}"):
            pass
    store.refusing = True
    telemetry.start(store)

    await telemetry.flush()
    refused = list(telemetry.exporter.batches)
    store.refusing = False
    await telemetry.stop()

    assert 0 < len(refused) <= QUEUED_BATCHES
    assert [item["name"] for item in store.spans()] == [f"s{number}" for number in range(10, QUEUED_SPANS + 10)]
    assert sum(batch["dropped"] for batch in store.batches) == 10
    assert b'popagent_telemetry_dropped_total{kind="span"}' in metrics.render()


async def test_a_record_that_cannot_be_encoded_is_dropped_and_counted_and_the_others_leave(
    store: Store, telemetry: Telemetry
) -> None:
    log = logging.getLogger("popagent.test")
    log.setLevel(logging.INFO)
    with span("before \ud83d"):
        log.info("half a character: \udc00")
    log.info("a whole one")
    with span("after"):
        pass

    await telemetry.flush()
    await telemetry.flush()

    assert [item["name"] for item in store.spans()] == ["after"]
    assert [line["message"] for line in store.logs()] == [
        "a whole one",
        "telemetry that cannot be encoded was dropped",
    ]
    assert sum(batch["dropped"] for batch in store.batches) == 2


def test_a_metric_asked_for_twice_is_the_same() -> None:
    first = metrics.counter("popagent_test_total", "Test", ("kind",))

    first.labels("a").inc()

    assert metrics.counter("popagent_test_total", "Test", ("kind",)) is first
    with pytest.raises(TypeError):
        metrics.gauge("popagent_test_total", "Test")
    assert b"process_resident_memory_bytes" in metrics.render()


async def test_a_secret_at_the_place_where_a_text_is_cut_does_not_leave_in_part(
    store: Store, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "_known", {})
    register_secret("CANARY-of-a-key-0123456789", "key")
    filling = "x" * (LONGEST_ATTRIBUTE - 10)

    logging.getLogger("popagent_test").warning(
        "%s CANARY-of-a-key-0123456789", filling, extra={"detail": f"{filling} CANARY-of-a-key-0123456789"}
    )
    with span("cut", prompt=f"{filling} CANARY-of-a-key-0123456789"):
        pass
    await telemetry.flush()

    [line] = [line for line in store.logs() if line["message"].startswith("xxx")]
    assert "CANARY" not in line["message"] + line["attributes"]["detail"]
    assert len(line["message"]) <= LONGEST_ATTRIBUTE
    assert "CANARY" not in str(store.spans())
    assert len(store.spans()[0]["attributes"]["prompt"]) <= LONGEST_ATTRIBUTE
