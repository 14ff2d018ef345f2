from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from popagent_bus import Bus, live, reading
from popagent_bus.live import END, Frame, LiveGapError, LivePublisher, LiveReader, stored_frames
from popagent_bus.streams import keep_streams
from popagent_kit import tasks
from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto import matrix
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs, until


def chunk(number: int, size: int = 0) -> bytes:
    return b'data: {"n":%d%s}\n\n' % (number, b',"x":"%s"' % (b"y" * size) if size else b"")


def chunks(first: int, count: int, size: int = 0) -> bytes:
    return b"".join(chunk(number, size) for number in range(first, first + count))


def new_subject() -> str:
    return matrix.live_subject("chat", "turns", new_id())


async def read_all(reader: LiveReader) -> bytes:
    async with reader:
        return b"".join([frame.data async for frame in reader])


async def read_on(reader: LiveReader) -> asyncio.Task[bytes]:
    """Open the reader, and read it to its end beside the test."""
    await reader.open()
    await reader.connection.flush()

    async def read() -> bytes:
        try:
            return b"".join([frame.data async for frame in reader])
        finally:
            await reader.close()

    return asyncio.create_task(read())


@pytest.fixture
async def chat(connect_as: ConnectAs) -> Bus:
    return await connect_as("chat")


@pytest.fixture
async def gateway(connect_as: ConnectAs) -> Bus:
    return await connect_as("gateway")


@pytest.fixture
async def publisher(chat: Bus) -> AsyncIterator[LivePublisher]:
    publisher = LivePublisher(chat, new_subject())
    yield publisher
    publisher.close()


async def test_the_first_frame_leaves_at_once_and_the_rest_collected(gateway: Bus, publisher: LivePublisher) -> None:
    async with LiveReader(gateway, publisher.subject, replay=False) as reader:
        await gateway.flush()
        for number in range(20):
            publisher.send(number, 1, chunk(number))
        publisher.send(20, 0, b"", end=True)
        frames = [frame async for frame in reader]

    assert (frames[0].first, frames[0].count) == (0, 1)
    assert len(frames) == 2
    assert frames[-1].flag == END
    assert b"".join(frame.data for frame in frames) == chunks(0, 20)


async def test_who_joins_late_or_after_the_end_gets_every_chunk(
    chat: Bus, gateway: Bus, publisher: LivePublisher
) -> None:
    publisher.send(0, 5, chunks(0, 5))
    joined = asyncio.create_task(read_all(LiveReader(gateway, publisher.subject)))
    later = asyncio.create_task(read_all(LiveReader(gateway, publisher.subject, from_chunk=3)))
    publisher.send(5, 3, chunks(5, 3))
    publisher.send(8, 1, chunk(8), end=True)

    assert await joined == chunks(0, 9)
    assert await later == chunks(3, 6)
    assert await read_all(LiveReader(gateway, publisher.subject)) == chunks(0, 9)
    assert await read_all(LiveReader(chat, publisher.subject, from_chunk=9)) == b""


async def test_twenty_thousand_chunks_replay_with_the_door_s_own_rights(chat: Bus, gateway: Bus) -> None:
    publisher = LivePublisher(chat, new_subject(), coalesce_s=0)
    for number in range(20_000):
        await chat.client.publish(publisher.subject, Frame(number, 1, "-", chunk(number)).encode())
    await chat.client.publish(publisher.subject, Frame(20_000, 0, END, b"").encode())
    await chat.flush()
    publisher.close()

    assert await read_all(LiveReader(gateway, publisher.subject)) == chunks(0, 20_000)
    assert gateway.state.permission_errors == []


async def test_joining_at_any_moment_leaves_no_hole(chat: Bus, gateway: Bus) -> None:
    async def turn(seed: int) -> None:
        dice = random.Random(seed)
        subject = new_subject()
        total = 40

        async def write() -> None:
            for number in range(total):
                await chat.client.publish(subject, Frame(number, 1, "-", chunk(number)).encode())
                if dice.random() < 0.3:
                    await asyncio.sleep(dice.random() * 0.002)
            await chat.client.publish(subject, Frame(total, 0, END, b"").encode())

        writing = asyncio.create_task(write())
        await asyncio.sleep(dice.random() * 0.01)
        assert await read_all(LiveReader(gateway, subject)) == chunks(0, total)
        await writing

    for start in range(0, 300, 20):
        await asyncio.gather(*(turn(seed) for seed in range(start, start + 20)))


async def test_nats_killed_in_mid_turn_gives_the_same_stream_to_the_last_chunk(
    chat: Bus, gateway: Bus, publisher: LivePublisher, suite_nats: NatsServer
) -> None:
    total = 300
    reader = await read_on(LiveReader(gateway, publisher.subject, replay=False))

    async def write() -> None:
        for number in range(total):
            publisher.send(number, 1, chunk(number, 500))
            await asyncio.sleep(0.003)
        publisher.send(total, 0, b"", end=True)

    writing = asyncio.create_task(write())
    await until(lambda: (publisher.next_chunk or 0) > 50)
    await asyncio.to_thread(suite_nats.kill)
    await until(lambda: (publisher.next_chunk or 0) > 120)
    await asyncio.to_thread(suite_nats.start)
    await writing

    assert await asyncio.wait_for(reader, 10) == chunks(0, total, 500)
    assert await asyncio.wait_for(read_all(LiveReader(gateway, publisher.subject)), 10) == chunks(0, total, 500)


async def test_a_turn_that_outgrows_the_outage_buffer_is_whole_afterwards(
    chat: Bus, gateway: Bus, publisher: LivePublisher, suite_nats: NatsServer
) -> None:
    total = 60
    reader = asyncio.create_task(read_all(LiveReader(gateway, publisher.subject)))
    publisher.send(0, 1, chunk(0, 100_000))
    suite_nats.kill()
    await until(lambda: not chat.connected)
    for number in range(1, total):  # 6 MB, three times the buffer
        publisher.send(number, 1, chunk(number, 100_000))
    publisher.send(total, 0, b"", end=True)
    suite_nats.start()

    assert await asyncio.wait_for(reader, 15) == chunks(0, total, 100_000)


async def test_a_wiped_nats_in_mid_turn_costs_no_chunk(
    chat: Bus, gateway: Bus, publisher: LivePublisher, suite_nats: NatsServer
) -> None:
    keeper = asyncio.create_task(keep_streams(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"]))
    try:
        reader = LiveReader(gateway, publisher.subject)
        reading_on = await read_on(reader)
        publisher.send(0, 5, chunks(0, 5))
        await until(lambda: reader.expected == 5)
        await asyncio.to_thread(suite_nats.wipe)
        await until(lambda: chat.connected and gateway.connected)
        publisher.send(5, 5, chunks(5, 5))
        publisher.send(10, 0, b"", end=True)

        assert await asyncio.wait_for(reading_on, 10) == chunks(0, 10)
    finally:
        await tasks.end(keeper)


async def test_who_does_not_hold_the_stream_publishes_nothing_until_the_end_was_committed(
    chat: Bus, gateway: Bus
) -> None:
    held = True
    publisher = LivePublisher(chat, new_subject(), held=lambda: held)
    async with LiveReader(gateway, publisher.subject, replay=False) as reader:
        await gateway.flush()
        publisher.send(0, 1, chunk(0))
        first = await reader.next(5)
        publisher.send(1, 1, chunk(1))
        held = False  # it slept, and another one has its work
        await until(lambda: not publisher._held)
        await publisher.repeat()
        await chat.settle()
        await chat.flush()
        await gateway.flush()
        kept_back = await reader.next(0)
        publisher.send(2, 0, b"", end=True)
        await publisher.repeat()
        rest = [frame async for frame in reader]
    publisher.close()

    assert first == Frame(0, 1, "-", chunk(0))
    assert kept_back is None
    assert [(frame.first, frame.next, frame.flag) for frame in rest] == [(1, 2, END)]


async def test_an_end_with_a_lower_number_than_was_read_ends_the_reader_at_once(chat: Bus, gateway: Bus) -> None:
    subject = new_subject()
    async with LiveReader(gateway, subject, replay=False) as reader:
        await gateway.flush()
        await chat.client.publish(subject, Frame(0, 5, "-", chunks(0, 5)).encode())
        # The stream was wiped, and who recovered the work counted from what was stored of it.
        await chat.client.publish(subject, Frame(2, 1, END, chunk(2)).encode())
        frames = [await reader.next(5) for _ in range(2)]

    assert frames == [Frame(0, 5, "-", chunks(0, 5)), Frame(5, 0, END, b"")]
    assert reader.ended


async def test_what_a_checkpoint_covers_is_not_repeated(chat: Bus, gateway: Bus, publisher: LivePublisher) -> None:
    async with LiveReader(gateway, publisher.subject, replay=False) as reader:
        await gateway.flush()
        publisher.send(0, 2, chunks(0, 2))
        await until(lambda: publisher._timer is None)
        publisher.send(2, 2, chunks(2, 2))
        publisher.forget_before(2)
        async with LiveReader(gateway, publisher.subject, 2, replay=False) as later:
            await gateway.flush()
            await publisher.repeat()
            repeated = await later.next(1)
        known = [await reader.next(0.2) for _ in range(3)]

    assert repeated is not None
    assert (repeated.first, repeated.count) == (2, 2)
    assert [frame.first if frame else None for frame in known] == [0, 2, None]


async def test_a_silent_owner_is_heard_by_its_heartbeat(
    gateway: Bus, chat: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "BEAT_S", 0.15)
    publisher = LivePublisher(chat, new_subject())
    async with LiveReader(gateway, publisher.subject, replay=False) as reader:
        opened_at = reader.heard_at

        async with asyncio.timeout(10):
            while reader.heard_at == opened_at:
                assert await reader.next(0.1) is None
    publisher.close()


async def test_a_lost_last_frame_is_found_in_the_stream(
    gateway: Bus, chat: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOOK_WHEN_SILENT_S", 0.3)
    subject = new_subject()
    async with LiveReader(gateway, subject, replay=False) as reader:
        assert reader._subscription is not None
        await reader._subscription.unsubscribe()  # from here on nothing is pushed
        await chat.client.publish(subject, Frame(0, 1, END, chunk(0)).encode())

        frame = await reader.next(2)

    assert frame == Frame(0, 1, END, chunk(0))


async def test_a_reader_that_is_not_read_holds_a_bounded_number_of_bytes_and_misses_nothing(
    gateway: Bus, publisher: LivePublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "HELD_BYTES", 50_000)
    publisher.coalesce_s = 0
    most = 0
    async with LiveReader(gateway, publisher.subject, replay=False) as reader:
        for number in range(60):
            publisher.send(number, 1, chunk(number, 10_000))
            await publisher.connection.flush()
            await gateway.flush()
            most = max(most, sum(len(data or b"") for data in reader._arrived._queue))  # type: ignore[attr-defined]
        publisher.send(60, 0, b"", end=True)
        read = b"".join([frame.data async for frame in reader])

    assert read == chunks(0, 60, 10_000)
    assert 0 < most <= 50_000
    assert reader._ahead_bytes == 0
    assert reader._arrived_bytes == sum(len(data or b"") for data in reader._arrived._queue)  # type: ignore[attr-defined]


async def test_chunks_that_are_gone_are_told_and_not_waited_for_without_end(
    gateway: Bus, chat: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "HOLE_CEILING_S", 0.5)
    subject = new_subject()
    async with LiveReader(gateway, subject) as reader:
        await chat.client.publish(subject, Frame(5, 1, "-", chunk(5)).encode())

        with pytest.raises(LiveGapError):
            await reader.next(5)


async def test_a_waiting_reader_is_woken_at_once(gateway: Bus) -> None:
    async with LiveReader(gateway, new_subject(), replay=False) as reader:
        waiting = asyncio.create_task(reader.next(60))
        await asyncio.sleep(0)
        reader.wake()

        assert await asyncio.wait_for(waiting, 10) is None


async def test_chunks_out_of_order_or_after_the_end_are_refused(publisher: LivePublisher) -> None:
    publisher.send(0, 1, chunk(0))
    with pytest.raises(InvalidInputError):
        publisher.send(2, 1, chunk(2))
    publisher.send(1, 1, chunk(1), end=True)
    with pytest.raises(InvalidInputError):
        publisher.send(2, 1, chunk(2))


async def test_the_owner_reads_its_own_frames_after_a_crash(chat: Bus, publisher: LivePublisher) -> None:
    publisher.send(0, 3, chunks(0, 3))
    await chat.settle()
    await chat.flush()

    async def stored() -> bool:
        return bool((await chat.direct_get("LIVE_CHAT", publisher.subject)).messages)

    await until(stored)
    await publisher.repeat()
    publisher.send(3, 2, chunks(3, 2))

    async def all_stored() -> bool:
        return len((await chat.direct_get("LIVE_CHAT", publisher.subject)).messages) == 3

    await until(all_stored)
    found = [frame async for frame in stored_frames(chat, publisher.subject, from_chunk=1)]
    assert [(frame.first, frame.count) for frame in found] == [(1, 2), (3, 2)]
    assert b"".join(frame.data for frame in found) == chunks(1, 4)


async def test_a_turn_taken_over_goes_on_at_its_number(gateway: Bus, publisher: LivePublisher) -> None:
    async with LiveReader(gateway, publisher.subject, from_chunk=7, replay=False) as reader:
        await gateway.flush()
        publisher.send(7, 1, chunk(7), end=True)
        publisher.close()

        assert await reader.next(2) == Frame(7, 1, END, chunk(7))
