from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.clock import now
from popagent_observability.records import Window, parse_batch
from popagent_observability.storing import Storing

from .conftest import RETENTION_DAYS, TRACE, batch, encoded, log_line, span, trace_id

SUMMARY = """
    select name, service, state, span_count, open_count, failed_count, session_id, turn_id, input_tokens,
        output_tokens, started_at, ended_at
    from traces where trace_id = $1
"""


async def summary(pool: Pool, trace_id: str = TRACE) -> dict[str, Any]:
    [row] = await pool.fetch(SUMMARY, trace_id)
    return dict(row)


def turn() -> list[dict[str, Any]]:
    """What one turn tells: each span as it starts and as it ended, in a tree of four."""
    began = now()
    tree = [
        (1, None, "POST /api/chat", {}),
        (2, 1, "chat.turn", {"popagent.turn.id": "t1", "popagent.session.id": "s1"}),
        (
            3,
            2,
            "agent.run",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 7,
            },
        ),
        (
            4,
            3,
            "chat model",
            {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7},
        ),
    ]
    ended = [
        span(number, parent, name=name, attributes=attributes, at=began + timedelta(milliseconds=number))
        for number, parent, name, attributes in tree
    ]
    started = [record | {"endedAt": None, "attributes": {}} for record in ended]
    return started + ended


async def test_a_span_is_stored_when_it_starts_and_completed_when_it_ends(pool: Pool, storing: Storing) -> None:
    began = now()
    await storing.put(batch(span(at=began, running=True, name="HTTP POST")))
    running = await summary(pool)

    await storing.put(batch(span(at=began, name="POST /api/chat")))
    ended = await summary(pool)

    assert (running["name"], running["state"], running["span_count"]) == ("HTTP POST", "open", 1)
    assert (ended["name"], ended["state"], ended["span_count"]) == ("POST /api/chat", "ok", 1)
    assert (ended["ended_at"] - ended["started_at"]) == timedelta(milliseconds=10)


async def test_batches_in_any_order_and_any_number_give_the_same_summary(pool: Pool, storing: Storing) -> None:
    seeds = range(30)

    for seed in seeds:
        order = random.Random(seed)
        records = [record | {"traceId": trace_id(seed)} for record in turn() * 2]
        order.shuffle(records)
        cuts = sorted(order.sample(range(1, len(records)), 5))
        for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
            await storing.put(batch(*records[start:end]))

    for seed in seeds:
        found = await summary(pool, trace_id(seed))
        assert found["name"] == "POST /api/chat"
        assert (found["state"], found["span_count"], found["open_count"], found["failed_count"]) == ("ok", 4, 0, 0)
        assert (found["session_id"], found["turn_id"]) == ("s1", "t1")
        assert (found["input_tokens"], found["output_tokens"]) == (100, 7)
    assert await pool.fetchval("select sum(spans) from days") == 4 * len(seeds)


async def test_the_same_batches_from_many_writers_at_once_count_once(pool: Pool) -> None:
    records = turn()
    writers = [Storing(pool) for _ in range(4)]

    await asyncio.gather(*(writer.put(batch(*records)) for writer in writers for _ in range(5)))

    found = await summary(pool)
    assert (found["span_count"], found["open_count"], found["input_tokens"]) == (4, 0, 100)
    assert await pool.fetchval("select sum(spans) from days") == 4


async def test_spans_of_several_services_are_one_tree(pool: Pool, storing: Storing) -> None:
    began = now()
    root = span(1, at=began, name="POST /api/chat")
    child = span(2, 1, at=began + timedelta(milliseconds=2), name="chat.turn")

    await storing.put(batch(child, service="chat"))
    provisional = await summary(pool)
    await storing.put(batch(root, service="gateway"))
    found = await summary(pool)

    assert (provisional["name"], provisional["service"]) == ("chat.turn", "chat")
    assert (found["name"], found["service"], found["span_count"]) == ("POST /api/chat", "gateway", 2)


async def test_one_failed_span_makes_the_trace_an_error(pool: Pool, storing: Storing) -> None:
    await storing.put(batch(span(1), span(2, 1, status="error", statusMessage="the model is gone")))

    found = await summary(pool)

    assert (found["state"], found["failed_count"]) == ("error", 1)


async def test_a_log_record_that_comes_twice_is_stored_once(pool: Pool, storing: Storing) -> None:
    moment = now()
    lines = [log_line("hello", at=moment), log_line("hello", at=moment), log_line("world", at=moment)]

    first = await storing.put(batch(logs=lines))
    again = await storing.put(batch(logs=lines))

    assert (first.logs, again.logs) == (2, 0)
    assert await pool.fetchval("select count(*) from logs") == 2
    assert await pool.fetchval("select sum(logs) from days") == 2


async def test_records_that_come_together_are_stored_in_one_transaction(pool: Pool, storing: Storing) -> None:
    records = batch(logs=[log_line(f"record {number}") for number in range(40)]).logs

    await asyncio.gather(*(storing.put_record(record) for record in records))

    [row] = await pool.fetch("select count(*) as records, count(distinct xmin::text) as transactions from logs")
    assert dict(row) == {"records": 40, "transactions": 1}


async def test_a_record_that_cannot_be_stored_takes_no_other_along(pool: Pool, storing: Storing) -> None:
    [good] = batch(logs=[log_line("good")]).logs
    bad = replace(good, id="another", trace_id="\0")

    outcomes = await asyncio.gather(storing.put_record(good), storing.put_record(bad), return_exceptions=True)

    assert [type(outcome).__name__ for outcome in outcomes] == ["NoneType", "CharacterNotInRepertoireError"]
    assert await pool.fetchval("select array_agg(message) from logs") == ["good"]


async def test_a_day_dropped_behind_the_writers_back_is_made_anew(pool: Pool, storing: Storing) -> None:
    await storing.put(batch(span(1)))
    await pool.execute("select drop_day($1)", now().date())

    await storing.put(batch(span(2)))

    assert await pool.fetchval("select count(*) from spans") == 1


@pytest.mark.full
async def test_five_thousand_spans_a_second_are_checked_and_stored(storing: Storing) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "a-model",
        "gen_ai.usage.input_tokens": 1_200,
        "popagent.turn.id": "t1",
        "popagent.session.id": "s1",
        "http.route": "/api/chat/{id}/stream",
    }
    batches = [
        encoded([span(number, 1, traceId=trace_id(trace), attributes=attributes) for number in range(2, 252)])
        for trace in range(1, 81)
    ]
    moment = now()
    window = Window.around(moment, RETENTION_DAYS)
    began = process_time()  # neighbours do not count; PostgreSQL takes half as much beside it

    stored = await asyncio.gather(*(storing.put(parse_batch("chat", data, window, moment)) for data in batches))

    total = sum(each.spans for each in stored)
    assert total == 20_000
    assert total / (process_time() - began) >= 5_000
