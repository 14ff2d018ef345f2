from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

import popagent_rows
from popagent_db.pool import Pool
from popagent_db.query import prepare_all
from popagent_proto.chat.sessions import SessionDeleted
from popagent_rows import outbox as outbox_module
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse


def event(aggregate: str, version: int) -> SessionDeleted:
    return SessionDeleted(aggregate_id=aggregate, session_id=aggregate, version=version)


class Recorder:
    """A bus that can be broken."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.headers: list[dict[str, str]] = []
        self.broken = False
        self.arrived = asyncio.Event()

    async def publish(self, subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
        if self.broken:
            raise ConnectionError("no bus")
        told = SessionDeleted.decode(payload)
        assert (told.event_id, told.subject) == (msg_id, subject)
        self.seen.append((told.aggregate_id, told.version))
        self.headers.append(headers)
        self.arrived.set()
        return len(self.seen)

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.seen) < count:
                self.arrived.clear()
                await self.arrived.wait()


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def outbox(pool: Pool, pulse: Pulse, recorder: Recorder) -> AsyncIterator[Outbox]:
    made = Outbox(pool, recorder.publish)
    made.start(pulse)
    yield made
    await made.stop()


async def test_an_event_is_published_right_after_the_commit(pool: Pool, recorder: Recorder) -> None:
    silent = Pulse(pool, period_s=60)
    outbox = Outbox(pool, recorder.publish)
    outbox.start(silent)

    async with outbox.transaction() as conn:
        await outbox.add(conn, event("s1", 1))
        before_commit = list(recorder.seen)
    await recorder.wait_for(1)
    async with pool.transaction() as conn:
        await outbox.add(conn, event("s1", 2))
    await recorder.wait_for(2)

    await outbox.stop()
    assert before_commit == []
    assert recorder.seen == [("s1", 1), ("s1", 2)]
    assert await pool.fetchval("select count(*) from outbox where sent_at is null") == 0


async def test_what_was_rolled_back_is_never_published(outbox: Outbox, recorder: Recorder) -> None:
    async def change() -> None:
        async with outbox.transaction() as conn:
            await outbox.add(conn, event("s1", 1))
            raise RuntimeError("rule broken")

    failed = await asyncio.gather(change(), return_exceptions=True)
    async with outbox.transaction() as conn:
        await outbox.add(conn, event("s2", 1))
    await recorder.wait_for(1)

    assert isinstance(failed[0], RuntimeError)
    assert recorder.seen == [("s2", 1)]


async def test_events_of_an_aggregate_arrive_in_order_while_the_bus_comes_and_goes(
    outbox: Outbox, recorder: Recorder
) -> None:
    for version in range(40):
        recorder.broken = version % 10 > 6
        async with outbox.transaction() as conn:
            for aggregate in ("a", "b", "c"):
                await outbox.add(conn, event(aggregate, version))
        await asyncio.sleep(0)
    recorder.broken = False

    await recorder.wait_for(120)

    for aggregate in ("a", "b", "c"):
        versions = [version for name, version in recorder.seen if name == aggregate]
        assert versions == list(range(40))


async def test_a_thousand_events_leave_in_batches_and_sent_ones_are_pruned_after_a_day(
    pool: Pool, outbox: Outbox, recorder: Recorder
) -> None:
    async with outbox.transaction() as conn:
        for number in range(1_000):
            await outbox.add(conn, event(f"s{number % 7}", number))
    await recorder.wait_for(1_000)
    await outbox.stop()

    kept = await outbox.prune()
    await pool.execute("update outbox set sent_at = now() - interval '25 hours'")
    gone = await outbox.prune()

    assert (kept, gone) == (0, 1_000)
    assert (await outbox.backlog()).pending == 0


async def test_two_relays_publish_each_event_once(pool: Pool, pulse: Pulse, recorder: Recorder) -> None:
    relays = [Outbox(pool, recorder.publish) for _ in range(2)]
    async with pool.transaction() as conn:
        for number in range(500):
            await relays[0].add(conn, event(f"s{number}", 1))

    for relay in relays:
        relay.start(pulse)
    await recorder.wait_for(500)
    for relay in relays:
        await relay.stop()

    assert len(recorder.seen) == len(set(recorder.seen)) == 500


async def test_each_transaction_wakes_the_relay_after_its_own_commit(pool: Pool, recorder: Recorder) -> None:
    outbox = Outbox(pool, recorder.publish)
    outbox.start(Pulse(pool, period_s=60))

    async with outbox.transaction() as slow:
        await outbox.add(slow, event("slow", 1))
        async with outbox.transaction() as quick:
            await outbox.add(quick, event("quick", 1))
        await recorder.wait_for(1)
        await asyncio.sleep(outbox_module.NUDGE_S * 3)
    await recorder.wait_for(2)

    await outbox.stop()
    assert recorder.seen == [("quick", 1), ("slow", 1)]


async def test_what_follows_soon_goes_together_a_little_later(
    pool: Pool, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "PACE_S", 0.5)
    clock = asyncio.get_running_loop().time
    outbox = Outbox(pool, recorder.publish)
    outbox.start(Pulse(pool, period_s=60))
    sent_at = []
    for number in (1, 2):
        async with outbox.transaction() as connection:
            await outbox.add(connection, event("a", number))
        await recorder.wait_for(number)
        sent_at.append(clock())

    await outbox.stop()

    assert sent_at[1] - sent_at[0] >= 0.4


async def test_an_event_is_held_back_while_an_older_one_of_its_aggregate_is_with_another_relay(
    pool: Pool, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "BATCH", 2)
    publishing, go_on = asyncio.Event(), asyncio.Event()

    async def publish_slowly(subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
        publishing.set()
        await go_on.wait()
        return await recorder.publish(subject, payload, msg_id, headers)

    slow, quick = Outbox(pool, publish_slowly), Outbox(pool, recorder.publish)
    async with pool.transaction() as conn:
        for version in range(1, 4):
            await quick.add(conn, event("a", version))
        await quick.add(conn, event("b", 1))

    sending = asyncio.create_task(slow.flush())
    await publishing.wait()
    await quick.flush()
    meanwhile = list(recorder.seen)
    quick.start(Pulse(pool, period_s=60))
    go_on.set()
    await recorder.wait_for(4)
    await sending
    await quick.stop()

    assert meanwhile == [("b", 1)]
    assert recorder.seen == [("b", 1), ("a", 1), ("a", 2), ("a", 3)]


async def test_two_relays_keep_the_order_of_each_aggregate(
    pool: Pool, pulse: Pulse, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "BATCH", 7)
    dice = random.Random(1)

    async def publish(subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
        await asyncio.sleep(dice.random() * 0.002)
        return await recorder.publish(subject, payload, msg_id, headers)

    relays = [Outbox(pool, publish) for _ in range(2)]
    for relay in relays:
        relay.start(pulse)
    for version in range(100):
        async with relays[version % 2].transaction() as conn:
            for aggregate in ("a", "b", "c"):
                await relays[0].add(conn, event(aggregate, version))
    await recorder.wait_for(300)
    for relay in relays:
        await relay.stop()

    for aggregate in ("a", "b", "c"):
        assert [version for name, version in recorder.seen if name == aggregate] == list(range(100))


async def test_the_backlog_is_measured_while_the_bus_is_away(outbox: Outbox, recorder: Recorder, pool: Pool) -> None:
    recorder.broken = True
    async with outbox.transaction() as conn:
        await outbox.add(conn, event("s1", 1))
    await pool.execute("update outbox set created_at = now() - interval '90 seconds'")

    backlog = await outbox.backlog()

    assert backlog.pending == 1
    assert backlog.oldest_s > 89


async def test_a_stream_that_did_not_change_gets_nothing_twice(pool: Pool, pulse: Pulse, recorder: Recorder) -> None:
    async def state() -> tuple[str, int]:
        return "one", len(recorder.seen)

    outbox = Outbox(pool, recorder.publish, stream_state=state)
    outbox.start(pulse)
    async with outbox.transaction() as conn:
        await outbox.add(conn, event("s1", 1))
    await recorder.wait_for(1)
    await outbox.stop()

    again = [await outbox.check_stream() for _ in range(3)]

    assert again == [0, 0, 0]


@pytest.mark.parametrize(("identity", "last_seq"), [("two", 5), ("one", 0)], ids=["wiped", "gone back"])
async def test_a_lost_stream_gets_the_last_day_again_exactly_once(
    pool: Pool, recorder: Recorder, identity: str, last_seq: int
) -> None:
    states = [("one", 0)]

    async def state() -> tuple[str, int]:
        return states[-1]

    replicas = [Outbox(pool, recorder.publish, stream_state=state) for _ in range(2)]
    async with pool.transaction() as conn:
        for number in range(5):
            await replicas[0].add(conn, event("s1", number))
    for replica in replicas:
        await replica.check_stream()
        await replica.flush()
    await pool.execute("update outbox set sent_at = now() - interval '25 hours' where position = 1")
    states.append((identity, last_seq))

    again = await asyncio.gather(*(replica.check_stream() for replica in replicas))

    assert sorted(again) == [0, 4]


async def test_an_event_published_to_a_stream_that_another_replica_found_lost_is_sent_again(
    pool: Pool, recorder: Recorder
) -> None:
    states = [("one", 0)]

    async def state() -> tuple[str, int]:
        return states[-1]

    other = Outbox(pool, recorder.publish, stream_state=state)

    async def publish_while_the_stream_is_lost(
        subject: str, payload: bytes, msg_id: str, headers: dict[str, str]
    ) -> int:
        seq = await recorder.publish(subject, payload, msg_id, headers)
        if len(recorder.seen) == 1:
            states.append(("two", 0))
            await other.check_stream()
        return seq

    outbox = Outbox(pool, publish_while_the_stream_is_lost, stream_state=state)
    await outbox.check_stream()
    async with pool.transaction() as conn:
        await outbox.add(conn, event("s1", 1))

    await outbox.flush()
    unsent = await pool.fetchval("select count(*) from outbox where sent_at is null")
    await outbox.flush()

    assert unsent == 1
    assert recorder.seen == [("s1", 1)] * 2
    assert await pool.fetchval("select count(*) from outbox where sent_at is null") == 0


async def test_our_own_queries_fit_the_kernel(pool: Pool) -> None:
    async with pool.acquire() as conn:
        # Whoever closes workspaces has the table by a migration of its own.
        await conn.execute("create temp table closed_workspaces (workspace_id text, closed_by text, until timestamptz)")
        await conn.execute("create unique index on closed_workspaces (workspace_id, closed_by)")
        assert await prepare_all(conn, popagent_rows) > 20
