from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import nats.errors
import pytest

from popagent_bus import Bus, Handlers, RawMessage, consuming
from popagent_bus.streams import connect_admin, declare, keep_streams
from popagent_kit import json, tasks
from popagent_kit.errors import UnavailableError
from popagent_proto import matrix
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs, ThingHappened, until

QUICK = (0.05,)


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "WATCH_S", 0.3)


class Heard:
    """Remembers what a handler was given; `trouble` says what it does with it."""

    def __init__(self) -> None:
        self.things: list[str] = []
        self.handled: set[str] = set()
        self.effects: list[str] = []
        self.go_on = asyncio.Event()

    async def hear(self, event: ThingHappened) -> None:
        self.things.append(event.thing)
        if event.thing.startswith("poison"):
            raise ValueError(f"cannot bear {event.thing} token=CANARY0123")
        if event.thing.startswith("slow"):
            await self.go_on.wait()
        if event.event_id not in self.handled:
            self.handled.add(event.event_id)
            self.effects.append(event.thing)


handlers: Handlers[Heard] = Handlers()


@handlers.hears(ThingHappened)
async def hear(heard: Heard, event: ThingHappened) -> None:
    await heard.hear(event)


def happened(thing: str) -> ThingHappened:
    return ThingHappened(aggregate_id="a", version=1, thing=thing)


async def tell(bus: Bus, event: ThingHappened, msg_id: str | None = None) -> int:
    return await bus.publish(event.subject, event.encode(), msg_id or event.event_id)


async def in_dlq(server: NatsServer) -> list[RawMessage]:
    admin = await connect_admin(server.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    try:
        subscription = await admin.jetstream().pull_subscribe("popagent.*.dlq.>", stream=matrix.DLQ)
        info = await admin.jetstream().stream_info(matrix.DLQ)
        found = await subscription.fetch(100, timeout=0.2) if info.state.messages else []
        return [RawMessage(m.subject, m.data, m.headers or {}, "", 0, 0) for m in found]
    finally:
        await admin.close()


@pytest.fixture
async def chat(connect_as: ConnectAs) -> Bus:
    return await connect_as("chat")


@pytest.fixture
async def heard() -> Heard:
    return Heard()


@pytest.fixture
async def observer(connect_as: ConnectAs, heard: Heard) -> Bus:
    bus = await connect_as("observability")
    await bus.serve(handlers, heard, backoff_s=QUICK)
    return bus


async def test_a_fact_reaches_its_hearer_once_also_when_told_three_times(
    chat: Bus, observer: Bus, heard: Heard
) -> None:
    event = happened("one")

    first = await tell(chat, event)
    again = await tell(chat, event)
    outside_the_window = await tell(chat, event, msg_id="another-id")
    await until(lambda: len(heard.things) == 2)

    assert first == again
    assert outside_the_window > first
    assert heard.effects == ["one"]


async def test_what_was_told_while_the_hearer_was_down_is_heard_later(
    connect_as: ConnectAs, chat: Bus, heard: Heard
) -> None:
    for number in range(20):
        await tell(chat, happened(f"t{number}"))

    late = await connect_as("observability")
    await late.serve(handlers, heard)
    await until(lambda: len(heard.things) == 20)

    assert sorted(heard.effects) == sorted(f"t{number}" for number in range(20))


async def test_poison_goes_to_the_dlq_after_five_deliveries_while_others_flow(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer
) -> None:
    poison = happened("poison")
    await tell(chat, poison)
    for number in range(5):
        await tell(chat, happened(f"t{number}"))

    async def buried() -> bool:
        return bool(await in_dlq(suite_nats))

    await until(buried)
    [dead] = await in_dlq(suite_nats)

    assert heard.things.count("poison") == 5
    assert sorted(heard.effects) == [f"t{number}" for number in range(5)]
    assert json.loads(dead.data)["thing"] == "poison"
    assert dead.headers["Popagent-Subject"] == poison.subject
    assert "cannot bear poison" in dead.headers["Popagent-Reason"]
    assert "CANARY" not in dead.headers["Popagent-Reason"]


@pytest.mark.parametrize(
    ("subject", "data"),
    [
        (ThingHappened.subject, b"not json"),
        (ThingHappened.subject, b"{}"),
        (ThingHappened.subject, b'{"x": "' + b"y" * 2_000_000 + b'"}'),
        ("popagent.chat.evt.tests-happened.v9", b"{}"),
    ],
)
async def test_what_can_never_be_read_is_buried_at_once_and_the_consumer_goes_on(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer, subject: str, data: bytes
) -> None:
    await chat.publish(subject, data, "bad")
    await tell(chat, happened("after"))

    async def buried() -> bool:
        return bool(await in_dlq(suite_nats))

    await until(buried)
    await until(lambda: heard.effects == ["after"])

    [dead] = await in_dlq(suite_nats)
    assert dead.headers["Popagent-Deliveries"] == "1"
    assert dead.data == data


async def test_a_message_that_leaves_no_room_for_the_reason_is_buried_cut(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer
) -> None:
    size = chat.client.max_payload - 100  # more than our own side lets through
    await chat.js.publish(ThingHappened.subject, b"x" * size)
    await tell(chat, happened("after"))

    async def buried() -> bool:
        return bool(await in_dlq(suite_nats))

    await until(buried)
    await until(lambda: heard.effects == ["after"])

    [dead] = await in_dlq(suite_nats)
    assert dead.headers["Popagent-Cut"] == str(size)


async def test_a_message_that_ends_its_process_every_time_reaches_the_dlq(
    chat: Bus, heard: Heard, connect_as: ConnectAs, suite_nats: NatsServer
) -> None:
    await tell(chat, happened("killer"))
    dying = await connect_as("observability")
    row = next(row for row in matrix.CONSUMERS if row.name == "observability-events")
    pull = await dying.js.pull_subscribe_bind(consumer=row.name, stream=row.stream)
    for _ in range(row.max_deliver):
        [message] = await pull.fetch(1, timeout=2)
        await message.nak()  # as the ack wait would, after the process is gone
    await dying.drain()

    survivor = await connect_as("observability")
    await survivor.serve(handlers, heard, backoff_s=QUICK)

    async def buried() -> bool:
        return bool(await in_dlq(suite_nats))

    await until(buried)
    assert heard.things == []


async def test_a_fact_nobody_here_knows_is_passed_over(chat: Bus, observer: Bus, heard: Heard) -> None:
    await chat.publish("popagent.chat.evt.tests-unknown.v1", b"{}", "unknown")
    await tell(chat, happened("known"))

    await until(lambda: heard.effects == ["known"])


async def test_a_slow_handler_does_not_hold_the_others(chat: Bus, observer: Bus, heard: Heard) -> None:
    await tell(chat, happened("slow"))
    for number in range(5):
        await tell(chat, happened(f"t{number}"))

    await until(lambda: len(heard.effects) == 5)
    heard.go_on.set()
    await until(lambda: len(heard.effects) == 6)

    assert heard.effects[-1] == "slow"


async def test_every_message_of_a_raw_consumer_is_taken(connect_as: ConnectAs, chat: Bus) -> None:
    taken: list[RawMessage] = []
    raw: Handlers[None] = Handlers()

    @raw.takes("observability-telemetry")
    async def take(_: None, message: RawMessage) -> None:
        taken.append(message)

    observer = await connect_as("observability")
    await observer.serve(raw, None)
    await chat.send_telemetry(b'{"spans": []}')

    await until(lambda: len(taken) == 1)
    assert (taken[0].subject, taken[0].data) == ("popagent.chat.telemetry.batch.v1", b'{"spans": []}')


async def test_a_deleted_consumer_is_noticed_and_bound_again_when_it_was_made_anew(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer
) -> None:
    await tell(chat, happened("before"))
    await until(lambda: heard.effects == ["before"])
    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await admin.jetstream().delete_consumer(matrix.EVENTS, "observability-events")
    await until(lambda: observer.state.missing_consumers == {"observability-events"})
    assert observer.state.problem() == "consumer missing: observability-events"
    await tell(chat, happened("meanwhile"))

    await declare(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await until(lambda: "meanwhile" in heard.effects)
    await admin.close()

    assert observer.state.problem() is None
    assert sorted(heard.effects) == ["before", "meanwhile"]


async def test_a_consumer_that_cannot_be_bound_is_told_and_bound_at_a_later_look(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind = observer.js.pull_subscribe_bind
    failures = 0

    async def bind_late(*args: Any, **options: Any) -> Any:
        nonlocal failures
        if failures < 2:
            failures += 1
            raise nats.errors.TimeoutError
        return await bind(*args, **options)

    monkeypatch.setattr(observer.js, "pull_subscribe_bind", bind_late)
    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await admin.jetstream().delete_consumer(matrix.EVENTS, "observability-events")
    await declare(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await admin.close()
    await until(lambda: observer.state.missing_consumers == {"observability-events"})

    await tell(chat, happened("after"))

    await until(lambda: heard.effects == ["after"])
    assert failures == 2
    assert observer.state.problem() is None


async def test_a_consumer_that_goes_away_between_the_look_and_the_binding_is_missing_and_never_made_by_us(
    connect_as: ConnectAs, heard: Heard, suite_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = await connect_as("observability")
    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    look = observer.js.consumer_info

    async def look_and_lose(stream: str, consumer: str) -> Any:
        info = await look(stream, consumer)
        await admin.jetstream().delete_consumer(stream, consumer)
        return info

    monkeypatch.setattr(observer.js, "consumer_info", look_and_lose)

    await observer.serve(handlers, heard, backoff_s=QUICK)

    await until(lambda: observer.state.missing_consumers == {"observability-events"})
    await observer.flush()
    await admin.close()
    assert observer.state.permission_errors == []


async def test_a_consumer_made_anew_between_two_looks_is_bound_again(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer
) -> None:
    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await admin.jetstream().delete_consumer(matrix.EVENTS, "observability-events")
    await declare(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await admin.close()

    await tell(chat, happened("after"))

    await until(lambda: heard.effects == ["after"])


async def test_no_fact_is_lost_while_nats_is_killed_and_restarted(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer
) -> None:
    told: list[str] = []

    async def telling() -> None:
        for number in range(60):
            event = happened(f"t{number}")
            while True:  # what the outbox relay does
                try:
                    await tell(chat, event)
                    break
                except UnavailableError:
                    await asyncio.sleep(0.05)
            told.append(event.thing)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(telling())
    for _ in range(2):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(suite_nats.kill)
        await asyncio.sleep(0.1)
        await asyncio.to_thread(suite_nats.start)
    await task
    await until(lambda: len(heard.effects) == 60, timeout_s=40)

    assert sorted(heard.effects) == sorted(told)


async def test_a_wiped_nats_has_its_streams_and_consumers_back_within_seconds(
    chat: Bus, observer: Bus, heard: Heard, suite_nats: NatsServer
) -> None:
    keeper = asyncio.create_task(keep_streams(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"]))
    try:
        await tell(chat, happened("before"))
        before = await chat.stream_state(matrix.EVENTS)
        await until(lambda: heard.effects == ["before"])

        await asyncio.to_thread(suite_nats.wipe)
        started = perf_counter()
        event = happened("after")
        while True:
            try:
                await tell(chat, event)
                break
            except UnavailableError:
                await asyncio.sleep(0.05)
        came_back_s = perf_counter() - started
        await until(lambda: heard.effects == ["before", "after"])

        after = await chat.stream_state(matrix.EVENTS)
        assert came_back_s < 5
        assert before.identity != after.identity
        assert (before.last_seq, after.last_seq) == (1, 1)
        await until(lambda: observer.state.problem() is None)
    finally:
        await tasks.end(keeper)


async def test_a_deleted_stream_is_made_anew_at_once(chat: Bus, suite_nats: NatsServer) -> None:
    keeper = asyncio.create_task(keep_streams(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"]))
    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    try:
        await asyncio.sleep(0.2)
        await admin.jetstream().delete_stream(matrix.EVENTS)

        async def back() -> bool:
            try:
                await chat.stream_state(matrix.EVENTS)
            except UnavailableError:
                return False
            return True

        await until(back, timeout_s=3)
    finally:
        await tasks.end(keeper)
        await admin.close()


async def test_declaring_twice_changes_nothing_and_a_changed_limit_is_set(
    suite_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials: Any = (suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])

    unchanged = await declare(*credentials)
    shorter = tuple(
        matrix.StreamRow(row.name, row.subjects, row.max_age_s // 2, row.max_bytes) for row in matrix.STREAMS
    )
    monkeypatch.setattr(matrix, "STREAMS", shorter)
    changed = await declare(*credentials)

    assert unchanged == []
    assert changed == [row.name for row in shorter]
    assert await declare(*credentials) == []


async def test_live_frames_are_kept_as_long_as_the_operator_says(
    suite_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_LIVE_AGE_S", "5")

    changed = await declare(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])

    assert changed == [matrix.live_stream("chat"), matrix.live_stream("task-runner")]


async def test_a_handler_of_what_is_not_ours_is_refused_at_start(connect_as: ConnectAs) -> None:
    scheduler = await connect_as("scheduler")

    with pytest.raises(TypeError, match="does not let scheduler hear"):
        await scheduler.serve(handlers, Heard())
