from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from popagent_bus.consuming import PoisonError
from popagent_db.pool import Pool
from popagent_kit import json
from popagent_kit.clock import now
from popagent_observability.bounds import LARGEST_BYTES
from popagent_observability.records import MOST_RECORDS, Batch, Window, parse_batch
from popagent_observability.storing import Storing

from .conftest import RETENTION_DAYS, batch, encoded, log_line, nanoseconds, span

CANARY = "sk-CANARY0123456789abcdef"
WRONG: list[Any] = [None, True, 1, -1, 2**63, 1.5, "text", "", [], [1], {}, {"a": 1}]


def parse(data: bytes) -> Batch:
    moment = now()
    return parse_batch("chat", data, Window.around(moment, RETENTION_DAYS), moment)


def stored_text(rows: Batch) -> str:
    return repr(rows.spans) + repr(rows.logs)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\xff",
        b"null",
        b"[]",
        b'{"spans": [], "logs": null}',
        b'{"spans": {}, "logs": []}',
        b'{"spans": [{"startedAt": NaN}], "logs": []}',
        b'{"spans": [{"startedAt": 1e999}], "logs": []}',
        b'{"spans": ["\\ud800"], "logs": []}',
        b'{"spans": ' + b"[" * 100_000 + b"]" * 100_000 + b', "logs": []}',
        json.dumps({"spans": [0] * (MOST_RECORDS + 1), "logs": []}),
    ],
)
def test_what_is_no_batch_is_poison(data: bytes) -> None:
    with pytest.raises(PoisonError):
        parse(data)


@pytest.mark.parametrize("field", sorted(span()))
async def test_a_field_of_a_wrong_type_neither_breaks_the_batch_nor_the_store(
    pool: Pool, storing: Storing, field: str
) -> None:
    odd = [span(number, **{field: value}) for number, value in enumerate(WRONG, start=10)]
    odd += [{"traceId": span()["traceId"]}, *WRONG]

    rows = parse(encoded([*odd, span(1)], [log_line("m") | {field: value} for value in WRONG]))
    await storing.put(rows)

    assert await pool.fetchval("select count(*) from spans where span_id = $1", span(1)["spanId"]) == 1
    assert await pool.fetchval("select span_count from traces where trace_id = $1", span()["traceId"]) == len(
        [row for row in rows.spans if row.trace_id == span()["traceId"]]
    )


@pytest.mark.parametrize("field", sorted(log_line("m")))
async def test_a_log_field_of_a_wrong_type_breaks_nothing(pool: Pool, storing: Storing, field: str) -> None:
    rows = parse(encoded([], [log_line("m") | {field: value} for value in WRONG]))

    await storing.put(rows)

    assert await pool.fetchval("select count(*) from logs") == len(rows.logs)


async def test_hostile_attributes_are_bounded_and_stored(pool: Pool, storing: Storing) -> None:
    deepest = b'[{"deeper":' * 480 + b'"bottom"' + b"}]" * 480
    attributes = {
        "huge": "x" * 2_000_000,
        "nul": "a\x00b",
        "n\x00ul": 1,
        "deep": "DEEP",
        "k" * 5_000: "long key",
        "wide": list(range(10_000)),
        "number": 1e300,
        "big": 2**64 - 1,
    } | {f"many{number}": "y" * 9_000 for number in range(100)}
    hostile = span(
        attributes=attributes,
        name="n\x00" * 5_000,
        statusMessage="s\x00" * 90_000,
        events=[{"name": "e" * 5_000, "attributes": {"nul": "\x00", "deep": "DEEP"}}] * 100,
        links=[{"l": "DEEP"}] * 100,
    )

    data = encoded([hostile], [log_line("m\x00" * 100_000, attributes=attributes)])
    await storing.put(parse(data.replace(b'"DEEP"', deepest)))

    row = (await pool.fetch("select name, status_text, attributes, events, size from spans"))[0]
    assert len(row["name"]) == 200
    assert len(row["status_text"]) == 2_000
    assert len(json.dumps(row["attributes"])) <= LARGEST_BYTES
    assert row["attributes"]["nul"] == "a\ufffdb"
    assert row["attributes"]["popagent.truncated"] is True
    assert row["size"] <= 2 * LARGEST_BYTES
    assert await pool.fetchval("select length(message) from logs") == 8_192


@pytest.mark.parametrize(
    "record",
    [
        {"attributes": {"prompt": f"use {CANARY} please"}},
        {"attributes": {"apiKey": "CANARY0123"}},
        {"attributes": {"deep": {"list": ["x", {"password": "CANARY0123"}]}}},
        {"attributes": {"texts": ["a", f"Authorization: Bearer {CANARY}"]}},
        {"attributes": {"url": "postgresql://me:CANARY0123@host/db"}},
        {"attributes": {CANARY: 1}},
        {"attributes": {"padded": "x" * 8_180 + f" {CANARY}"}},
        {"name": f"GET /?token={CANARY}"},
        {"status": "error", "statusMessage": f"refused {CANARY}"},
        {"events": [{"name": "exception", "attributes": {"exception.stacktrace": f"key={CANARY}"}}]},
        {"links": [{"attributes": {"authorization": "CANARY0123"}}]},
    ],
)
def test_a_secret_that_slipped_through_is_redacted_at_the_border(record: dict[str, Any]) -> None:
    as_log = {key: record[key] for key in record if key == "attributes"} | {"message": str(record)}

    rows = parse(encoded([span(**record)], [log_line("") | as_log], instance=CANARY))

    assert len(rows.spans) == len(rows.logs) == 1
    assert "CANARY0123" not in stored_text(rows)


def test_what_is_older_than_the_retention_or_far_ahead_is_left_out() -> None:
    moments = [now() + timedelta(days=days) for days in (-3_650, -RETENTION_DAYS - 2, -1, 0, 3, 3_650)]

    rows = batch(*(span(number, at=at) for number, at in enumerate(moments, start=1)))

    assert {row.span_id[-1] for row in rows.spans} == {"3", "4"}


def test_a_span_that_ends_before_it_began_lasts_no_time() -> None:
    [row] = batch(span(endedAt=nanoseconds(now() - timedelta(hours=1)))).spans

    assert row.ended_at == row.started_at


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({}, False),
        ({"status": "error"}, True),
        ({"attributes": {"http.response.status_code": 503}}, True),
        ({"attributes": {"http.response.status_code": 404}}, False),
        ({"attributes": {"gen_ai.operation.name": "invoke_agent", "error.type": "provider"}}, True),
        ({"attributes": {"gen_ai.operation.name": "execute_tool", "error.type": "tool_error"}}, False),
    ],
)
def test_failed_is_what_broke_and_not_what_was_refused(fields: dict[str, Any], failed: bool) -> None:
    [row] = batch(span(**fields)).spans

    assert row.failed is failed


def test_tokens_are_counted_where_they_were_used() -> None:
    used = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2}

    rows = batch(
        span(1, attributes={"gen_ai.operation.name": "invoke_agent", **used}),
        span(2, attributes={"gen_ai.operation.name": "chat", **used}),
        span(3, attributes={"gen_ai.usage.prompt_tokens": 7}),
        span(4, attributes={"gen_ai.usage.input_tokens": -5, "gen_ai.usage.output_tokens": "many"}),
    ).spans

    assert [(row.input_tokens, row.output_tokens) for row in rows] == [(0, 0), (5, 2), (7, 0), (0, 0)]
