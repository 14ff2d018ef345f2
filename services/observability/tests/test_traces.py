from __future__ import annotations

from datetime import timedelta
from time import perf_counter
from typing import Any, Literal, cast

import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_kit.clock import now
from popagent_kit.errors import InvalidInputError, NotFoundError
from popagent_observability import traces
from popagent_observability.deps import ObservabilityDeps
from popagent_observability.settings import ObservabilitySettings
from popagent_observability.storing import Storing
from popagent_proto.observability import GetTrace, ListTraces, TraceSummary

from .conftest import TRACE, batch, log_line, nanoseconds, span, span_id, trace_id

REPLY_BYTES = 1_000_000
Status = Literal["running", "ok", "error"]


@pytest.fixture
def deps(pool: Pool, storing: Storing) -> ObservabilityDeps:
    bus = cast(Bus, None)  # reading needs no bus
    return ObservabilityDeps(ObservabilitySettings(lost_after_s=60), pool, bus, storing)


async def fill(storing: Storing, count: int, **fields: Any) -> None:
    """Store `count` traces, one second apart, the first the oldest."""
    began = now() - timedelta(hours=1)
    spans = [
        span(1, traceId=trace_id(number), at=began + timedelta(seconds=number), **fields) for number in range(count)
    ]
    for start in range(0, count, 1_000):
        await storing.put(batch(*spans[start : start + 1_000]))


async def listed(deps: ObservabilityDeps, **query: Any) -> list[str]:
    page = await traces.list_traces(deps, ListTraces(**query))
    return [item.trace_id for item in page.items]


async def test_pages_follow_each_other_without_gap_or_repetition(deps: ObservabilityDeps, storing: Storing) -> None:
    await fill(storing, 25)
    found: list[TraceSummary] = []
    cursor: str | None = None

    while True:
        page = await traces.list_traces(deps, ListTraces(limit=10, cursor=cursor))
        found += page.items
        await storing.put(batch(span(1, traceId=trace_id(100 + len(found)))))  # newer ones do not disturb
        cursor = page.next_cursor
        if cursor is None:
            break

    assert [item.trace_id for item in found] == [trace_id(number) for number in reversed(range(25))]


@pytest.mark.parametrize("cursor", ["", "x", "a" * 5_000, "MjAyNnx4", "\x00", "é"])
async def test_a_cursor_of_somebody_else_is_refused(deps: ObservabilityDeps, cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="cursor"):
        await traces.list_traces(deps, ListTraces(cursor=cursor))


async def test_lists_are_narrowed_by_session_turn_and_status(deps: ObservabilityDeps, storing: Storing) -> None:
    began = now()
    named = {"popagent.session.id": "s1", "popagent.turn.id": "t1"}
    long_ago = nanoseconds(began - timedelta(minutes=10))
    await storing.put(batch(span(traceId=trace_id(1), at=began, attributes=named)))
    await storing.put(batch(span(traceId=trace_id(2), at=began + timedelta(seconds=1), status="error")))
    await storing.put(batch(span(traceId=trace_id(3), at=began + timedelta(seconds=2), running=True)))
    await storing.put(
        batch(
            span(traceId=trace_id(4), at=began - timedelta(minutes=11), running=True, attributes=named | {TURN: "t2"}),
            sentAt=long_ago,
        )
    )

    assert await listed(deps, status="ok") == [trace_id(1)]
    assert await listed(deps, status="running") == [trace_id(3)]
    assert await listed(deps, status="error") == [trace_id(2), trace_id(4)]
    assert await listed(deps, session_id="s1") == [trace_id(1), trace_id(4)]
    assert await listed(deps, session_id="s1", status="error") == [trace_id(4)]
    assert await listed(deps, turn_id="t1") == [trace_id(1)]
    assert await listed(deps, turn_id="t1", session_id="other") == []
    assert await listed(deps) == [trace_id(number) for number in (3, 2, 1, 4)]
    assert await listed(deps, turns_only=True) == [trace_id(1), trace_id(4)]
    assert await listed(deps, turns_only=True, status="ok") == [trace_id(1)]
    assert await listed(deps, turns_only=True, status="error") == [trace_id(4)]
    assert await listed(deps, turns_only=True, status="running") == []
    assert await listed(deps, turns_only=True, session_id="s1") == [trace_id(1), trace_id(4)]


TURN = "popagent.turn.id"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("completed", "ok"),
        ("stopped", "ok"),
        ("interrupted", "error"),
        ("failed", "error"),
        ("queued", "ok"),
        (7, "ok"),
    ],
)
async def test_a_trace_tells_how_its_turn_ended(
    deps: ObservabilityDeps, storing: Storing, state: Any, status: Status
) -> None:
    turn = span(2, 1, name="chat.turn", attributes={TURN: "t1", "popagent.turn.state": state})
    await storing.put(batch(span(1), turn | {"endedAt": None, "attributes": {}}))
    running = (await traces.list_traces(deps, ListTraces())).items[0]

    await storing.put(batch(turn))
    await storing.put(batch(span(3, 1)))
    ended = await traces.get_trace(deps, GetTrace(trace_id=TRACE))

    known = state if state in ("completed", "stopped", "interrupted", "failed") else None
    assert (running.status, running.turn_state) == ("running", None)
    assert (ended.status, ended.turn_state) == (status, known)


async def test_a_turn_whose_process_died_is_known_as_interrupted_before_it_counts_as_lost(
    deps: ObservabilityDeps, storing: Storing
) -> None:
    recovery = span(2, 1, name="chat.turn.recover", attributes={TURN: "t1", "popagent.turn.state": "interrupted"})

    await storing.put(batch(span(1, running=True), recovery))

    [listed_] = (await traces.list_traces(deps, ListTraces())).items
    assert (listed_.status, listed_.turn_state) == ("running", "interrupted")


async def test_a_running_trace_is_shown_as_running_with_its_spans(deps: ObservabilityDeps, storing: Storing) -> None:
    await storing.put(batch(span(1, running=True), span(2, 1)))

    trace = await traces.get_trace(deps, GetTrace(trace_id=TRACE))

    assert (trace.status, trace.duration_ms, trace.span_count) == ("running", None, 2)
    assert [(each.status, each.duration_ms) for each in trace.spans] == [("running", None), ("ok", 10.0)]


async def test_a_span_of_a_dead_process_becomes_an_error_that_says_so(
    deps: ObservabilityDeps, storing: Storing
) -> None:
    silent_since = nanoseconds(now() - timedelta(minutes=5))
    await storing.put(batch(span(1, at=now() - timedelta(minutes=6), running=True), span(2, 1), sentAt=silent_since))

    trace = await traces.get_trace(deps, GetTrace(trace_id=TRACE))
    [lost, ended] = trace.spans

    assert (trace.status, trace.duration_ms) == ("error", None)
    assert (lost.status, lost.status_text) == ("error", traces.NEVER_ENDED)
    assert (ended.status, ended.status_text) == ("ok", "")


async def test_a_trace_is_one_tree_over_services_with_its_logs(deps: ObservabilityDeps, storing: Storing) -> None:
    began = now()
    steps = [(1, None, "gateway"), (2, 1, "gateway"), (3, 2, "chat"), (4, 3, "chat"), (5, 3, "task-runner")]
    for number, parent, service in reversed(steps):
        record = span(number, parent, at=began + timedelta(milliseconds=number), events=[{"name": "seen"}])
        await storing.put(batch(record, logs=[log_line(f"in {number}", spanId=span_id(number))], service=service))

    trace = await traces.get_trace(deps, GetTrace(trace_id=TRACE))

    assert (trace.name, trace.service, trace.status, trace.truncated) == ("work 1", "gateway", "ok", False)
    assert trace.duration_ms == 14.0
    known = {each.span_id for each in trace.spans}
    assert [each.parent_id for each in trace.spans] == [None, *(span_id(parent) for parent in (1, 2, 3, 3))]
    assert all(each.parent_id is None or each.parent_id in known for each in trace.spans)
    assert [each.service for each in trace.spans] == [service for _, _, service in steps]
    assert trace.spans[0].attributes == {"events": [{"name": "seen"}]}
    assert {line.message for line in trace.logs} == {f"in {number}" for number, _, _ in steps}


async def test_an_unknown_trace_is_not_found(deps: ObservabilityDeps) -> None:
    with pytest.raises(NotFoundError):
        await traces.get_trace(deps, GetTrace(trace_id=TRACE))


@pytest.mark.parametrize(
    ("count", "attributes", "spans"),
    [
        (6_000, {"a": "x" * 600}, range(2_000, 5_001)),
        (1_000, {"a": "x" * 3_000}, range(1_000, 1_001)),
        (300, {"a": '"\\\n' * 2_700, "b": "é" * 8_000}, range(300, 301)),
    ],
)
async def test_a_large_trace_opens_within_a_second_and_fits_a_reply(
    deps: ObservabilityDeps, storing: Storing, count: int, attributes: dict[str, Any], spans: range
) -> None:
    began = now()
    for start in range(0, count, 500):
        numbers = range(start + 1, min(start + 500, count) + 1)
        await storing.put(
            batch(
                *(
                    span(each, 1 if each > 1 else None, at=began + timedelta(milliseconds=each), attributes=attributes)
                    for each in numbers
                ),
                logs=[log_line(f"{each} " + "l" * 8_000) for each in numbers[:200]],
            )
        )
    took_s = []

    for _ in range(3):
        asked = perf_counter()
        trace = await traces.get_trace(deps, GetTrace(trace_id=TRACE))
        reply = trace.encode()
        took_s.append(perf_counter() - asked)

    assert min(took_s) < 1.5  # the machine of a test does other things too, but not all the time
    assert len(reply) <= REPLY_BYTES
    assert trace.truncated
    assert trace.span_count == count
    assert len(trace.spans) in spans
    assert trace.spans[0].parent_id is None


async def test_a_small_trace_with_the_largest_attributes_is_shown_whole(
    deps: ObservabilityDeps, storing: Storing
) -> None:
    attributes = {f"text{number}": "x" * 8_000 for number in range(3)}
    await storing.put(batch(*(span(number, 1, attributes=attributes) for number in range(2, 22))))

    trace = await traces.get_trace(deps, GetTrace(trace_id=TRACE))

    assert not trace.truncated
    assert all(each.attributes == attributes for each in trace.spans)


@pytest.mark.full
async def test_lists_stay_fast_with_many_traces(deps: ObservabilityDeps, pool: Pool) -> None:
    await pool.execute(
        """
        insert into traces (trace_id, name, service, root_rank, root_started_at, started_at, ended_at, seen_at,
            span_count, open_count, failed_count, session_id, turn_id, input_tokens, output_tokens)
        select lpad(to_hex(n), 32, '0'), 'POST /api/chat', 'gateway', 0, t, t, t, t, 9, 0,
            case when n % 50000 = 0 then 1 else 0 end, 's' || n % 5000, 't' || n, 1, 1
        from generate_series(1, 200000) as n, lateral (select now() - make_interval(secs => n) as t) as at
        """
    )
    await pool.execute("analyze traces")
    queries: list[dict[str, Any]] = [
        {},
        {"status": "ok"},
        {"status": "error"},
        {"status": "running"},
        {"session_id": "s7"},
        {"session_id": "s7", "status": "error"},
        {"turn_id": "t77"},
    ]
    took: list[float] = []

    for _ in range(20):
        for query in queries:
            began = perf_counter()
            page = await traces.list_traces(deps, ListTraces(limit=50, **query))
            if page.next_cursor:
                await traces.list_traces(deps, ListTraces(limit=50, cursor=page.next_cursor, **query))
            took.append(perf_counter() - began)

    assert sorted(took)[int(len(took) * 0.95)] < 0.05
