from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter

import pytest
from nats.aio.msg import Msg

from popagent_bus import Bus, Handlers
from popagent_bus.streams import connect_admin
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Pool, open_pool
from popagent_kit.errors import NotFoundError, UnavailableError
from popagent_observability.app import all_handlers
from popagent_observability.deps import ObservabilityDeps
from popagent_observability.settings import ObservabilitySettings
from popagent_observability.storing import Storing
from popagent_proto import matrix
from popagent_proto.observability import GetStoreHealth, GetTrace, ListTraces, StoreHealthView, TraceView
from popagent_telemetry import current_trace_id, set_up, span
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs, Echo, EchoView, ThingHappened, until

from .conftest import TRACE, encoded, span_id
from .conftest import span as record

HANDLED_WITHIN_S = 20.0


async def observe(bus: Bus, pool: Pool) -> None:
    deps = ObservabilityDeps(ObservabilitySettings(), pool, bus, Storing(pool))
    await bus.serve(all_handlers(), deps, max_workers=16, backoff_s=(0.05,))


@pytest.fixture
async def observer(connect_as: ConnectAs, pool: Pool) -> AsyncIterator[Bus]:
    bus = await connect_as("observability")
    await observe(bus, pool)
    yield bus
    await bus.stop_serving()


@pytest.fixture
async def gateway(connect_as: ConnectAs) -> Bus:
    return await connect_as("gateway")


@pytest.fixture
async def chat(connect_as: ConnectAs) -> Bus:
    return await connect_as("chat")


async def trace_of(bus: Bus, trace_id: str, spans: int, status: str) -> TraceView:
    """Wait for the trace as it should become."""
    found: list[TraceView] = []

    async def is_there() -> bool:
        try:
            trace = await bus.ask(GetTrace(trace_id=trace_id))
        except NotFoundError:
            return False
        if (trace.span_count, trace.status) == (spans, status):
            found.append(trace)
        return bool(found)

    await until(is_there, HANDLED_WITHIN_S)
    return found[0]


async def health(bus: Bus) -> StoreHealthView:
    return await bus.ask(GetStoreHealth())


async def test_a_request_across_services_is_one_tree_seen_while_it_runs(observer: Bus, gateway: Bus, chat: Bus) -> None:
    handlers: Handlers[None] = Handlers()
    go_on = asyncio.Event()

    @handlers.answers(Echo)
    async def echo(_: None, command: Echo) -> EchoView:
        with span("work", {"popagent.session.id": "s1", "prompt": "my key is sk-CANARY0123456789"}):
            await go_on.wait()
        return EchoView(text=command.text)

    trace: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def request() -> None:
        with span("POST /api/test", kind="server"):
            trace.set_result(current_trace_id() or "")
            await gateway.ask(Echo(text="hello"), timeout_s=HANDLED_WITHIN_S)

    await chat.serve(handlers, None)
    telemetry = set_up("chat", "i1", chat.send_telemetry)
    try:
        began = perf_counter()
        asked = asyncio.create_task(request())
        running = await trace_of(gateway, await trace, 4, "running")
        seen_after_s = perf_counter() - began
        go_on.set()
        await asked
        ended = await trace_of(gateway, await trace, 4, "ok")
    finally:
        await telemetry.stop()

    assert seen_after_s < 2
    assert {each.status for each in running.spans} == {"running"}
    assert running.session_id == ended.session_id == "s1"
    names = {each.span_id: each.name for each in ended.spans}
    tree = [(each.name, names.get(each.parent_id or "")) for each in ended.spans]
    assert tree == [
        ("POST /api/test", None),
        ("ask chat.cmd.tests-echo", "POST /api/test"),
        ("answer chat.cmd.tests-echo", "ask chat.cmd.tests-echo"),
        ("work", "answer chat.cmd.tests-echo"),
    ]
    assert "CANARY" not in ended.encode().decode()


async def test_storing_telemetry_makes_no_telemetry(
    observer: Bus, chat: Bus, pool: Pool, suite_nats: NatsServer
) -> None:
    telemetry = set_up("observability", "i1", observer.send_telemetry)
    try:
        await telemetry.flush()
        before = await stored_in(suite_nats, matrix.TELEMETRY)
        await chat.send_telemetry(encoded([record(1)]))
        await until(lambda: has_spans(pool, 1))
        await telemetry.flush()
        after = await stored_in(suite_nats, matrix.TELEMETRY)
    finally:
        await telemetry.stop()

    assert after == before + 1


async def test_a_batch_that_is_none_goes_to_the_dlq_while_others_flow(
    observer: Bus, gateway: Bus, chat: Bus, pool: Pool, suite_nats: NatsServer
) -> None:
    await chat.send_telemetry(b"\x00 no json")
    await chat.send_telemetry(b'{"spans": {}}')
    await chat.send_telemetry(encoded([record(1), {"odd": True}, None]))

    async def buried() -> bool:
        return await stored_in(suite_nats, matrix.DLQ) == 2

    await until(lambda: has_spans(pool, 1))
    await until(buried)
    assert (await health(gateway)).pending_batches == 0


async def test_every_event_is_a_record_of_its_trace_and_told_twice_it_is_one(
    observer: Bus, gateway: Bus, chat: Bus, pool: Pool
) -> None:
    event = ThingHappened(aggregate_id="a", version=1, thing="thing-1")
    headers = {"traceparent": f"00-{TRACE}-{span_id(1)}-01"}

    await chat.publish(event.subject, event.encode(), event.event_id, headers)
    await chat.publish(event.subject, event.encode(), "told-again", headers)
    await chat.publish(event.subject, b'{"no": "event"}', "not-an-event")
    await chat.send_telemetry(encoded([record(1)]))
    trace = await trace_of(gateway, TRACE, 1, "ok")
    await until(lambda: nothing_waits(observer, matrix.EVENTS, "observability-events"))

    assert [(line.service, line.logger, line.message) for line in trace.logs] == [
        ("chat", "event", "chat.evt.tests-happened.v1")
    ]
    assert await pool.fetchval("select count(*) from logs") == 1
    assert await pool.fetchval("select attributes->>'thing' from logs") == "thing-1"


async def test_events_that_come_together_are_asked_for_and_stored_together(
    observer: Bus, chat: Bus, pool: Pool, suite_nats: NatsServer
) -> None:
    asked: list[str] = []

    async def note(message: Msg) -> None:
        asked.append(message.subject)

    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await admin.subscribe("$JS.API.CONSUMER.MSG.NEXT.EVENTS.observability-events", cb=note)
    await admin.flush()
    events = [ThingHappened(aggregate_id=f"a{number}", version=1, thing="t") for number in range(100)]

    await asyncio.gather(*(chat.publish(event.subject, event.encode(), event.event_id) for event in events))
    await until(lambda: nothing_waits(observer, matrix.EVENTS, "observability-events"))
    await admin.close()

    assert await pool.fetchval("select count(*) from logs where logger = 'event'") == len(events)
    assert len(asked) < len(events) / 4


async def test_a_stopped_store_blocks_nobody_and_catches_up_by_itself(
    connect_as: ConnectAs, gateway: Bus, chat: Bus, private_postgres: PostgresServer
) -> None:
    await bootstrap(private_postgres.dsn("popagent"), ["observability"], {"observability": "secret-word"})
    dsn = role_dsn(private_postgres.dsn("popagent"), "observability", "secret-word")
    await migrate(dsn, "observability")
    pool = await open_pool(dsn, application_name="test", max_size=4)
    bus = await connect_as("observability")
    await observe(bus, pool)
    await chat.send_telemetry(encoded([record(1)]))
    await until(lambda: has_spans(pool, 1))

    private_postgres.stop(immediate=True)
    began = perf_counter()
    for number in range(2, 102):
        await chat.send_telemetry(encoded([record(number, 1)]))
    event = ThingHappened(aggregate_id="a", version=1, thing="t")
    await chat.publish(event.subject, event.encode(), event.event_id)
    blocked_s = perf_counter() - began
    with pytest.raises(UnavailableError):
        await gateway.ask(ListTraces())
    with pytest.raises(UnavailableError):
        await health(gateway)
    backlog = await bus.backlog(matrix.TELEMETRY, "observability-telemetry")
    private_postgres.start()
    await until(lambda: has_spans(pool, 101), HANDLED_WITHIN_S)
    trace = await trace_of(gateway, TRACE, 101, "ok")
    await until(lambda: nothing_waits(bus, matrix.TELEMETRY, "observability-telemetry"))
    await bus.stop_serving()
    logs = await pool.fetchval("select count(*) from logs where logger = 'event'")
    await pool.close()

    assert blocked_s < 5
    assert backlog == 100
    assert len(trace.spans) == 101
    assert logs == 1


async def test_the_health_of_the_store_says_what_it_holds(observer: Bus, gateway: Bus, chat: Bus) -> None:
    empty = await health(gateway)
    await chat.send_telemetry(encoded([record(1), record(2, 1)]))
    await trace_of(gateway, TRACE, 2, "ok")

    full = await health(gateway)

    assert (empty.ready, empty.spans, empty.oldest_at) == (True, 0, None)
    assert (full.ready, full.spans, full.logs) == (True, 2, 0)
    assert full.size_bytes > empty.size_bytes
    assert full.oldest_at == full.newest_at is not None


async def has_spans(pool: Pool, count: int) -> bool:
    try:
        return bool(await pool.fetchval("select count(*) from spans") == count)
    except UnavailableError:
        return False


async def nothing_waits(bus: Bus, stream: str, consumer: str) -> bool:
    return await bus.backlog(stream, consumer) == 0


async def stored_in(server: NatsServer, stream: str) -> int:
    admin = await connect_admin(server.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    try:
        return (await admin.jetstream().stream_info(stream)).state.last_seq
    finally:
        await admin.close()
