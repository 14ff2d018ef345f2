"""The relay against a real NATS that is killed, restarted and wiped while events are written."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
from collections.abc import AsyncIterator

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from popagent_db.pool import Pool
from popagent_proto.chat.sessions import SessionDeleted
from popagent_proto.matrix import EVENTS
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_testing.servers import NatsServer

SUBJECT = SessionDeleted.subject


class Bus:
    """The two ports of the outbox over a plain client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js = client.jetstream(timeout=1)

    async def publish(self, subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
        ack = await self.js.publish(subject, payload, headers={"Nats-Msg-Id": msg_id, **headers})
        return ack.seq

    async def state(self) -> tuple[str, int]:
        info = await self.js.stream_info(EVENTS)
        return str(info.created), info.state.last_seq

    async def declare(self) -> None:
        try:
            await self.js.stream_info(EVENTS)
        except NotFoundError:
            await self.js.add_stream(StreamConfig(name=EVENTS, subjects=["popagent.*.evt.>"], duplicate_window=120))

    async def stored(self) -> set[str]:
        """The ids of the events in the stream."""
        info = await self.js.stream_info(EVENTS)
        found = set()
        for seq in range(info.state.first_seq, info.state.last_seq + 1):
            message = await self.js.get_msg(EVENTS, seq)
            assert message.data is not None
            found.add(SessionDeleted.decode(message.data).event_id)
        return found


@pytest.fixture
async def bus(private_nats: NatsServer) -> AsyncIterator[Bus]:
    client = await nats.connect(
        private_nats.url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=ignore, allow_reconnect=True
    )
    made = Bus(client)
    await made.declare()
    yield made
    await client.close()


async def ignore(_: Exception) -> None:
    """Disconnects are the subject of these tests."""


class Writer:
    """Commits events one after another until told to stop."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.committed: set[str] = set()
        self.task = asyncio.create_task(self.write())

    async def write(self) -> None:
        for number in range(100_000):
            event = SessionDeleted(aggregate_id=f"s{number % 5}", session_id=f"s{number % 5}", version=number)
            async with self.outbox.transaction() as conn:
                await self.outbox.add(conn, event)
            self.committed.add(event.event_id)
            await asyncio.sleep(0.005)

    async def reach(self, more: int) -> None:
        target = len(self.committed) + more
        while len(self.committed) < target:
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def until_sent(outbox: Outbox) -> None:
    async with asyncio.timeout(30):
        while (await outbox.backlog()).pending:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("wipe", [False, True], ids=["killed", "wiped"])
async def test_no_event_is_lost_when_nats_is_lost_under_load(
    pool: Pool, pulse: Pulse, private_nats: NatsServer, bus: Bus, wipe: bool
) -> None:
    outbox = Outbox(pool, bus.publish, stream_state=bus.state)

    async def reconnected() -> None:
        outbox.stream_may_be_new()

    bus.client._reconnected_cb = reconnected
    outbox.start(pulse)
    writer = Writer(outbox)
    await writer.reach(60)

    await asyncio.to_thread(private_nats.wipe if wipe else private_nats.kill)
    await writer.reach(60)
    if not wipe:
        await asyncio.to_thread(private_nats.start)
    while not bus.client.is_connected:
        await asyncio.sleep(0.05)
    await bus.declare()
    await writer.reach(60)
    await writer.stop()
    await until_sent(outbox)
    await outbox.check_stream()
    await until_sent(outbox)

    stored = await bus.stored()
    await outbox.stop()
    assert writer.committed <= stored
    assert len(stored - writer.committed) <= 1  # the write that was cancelled may have committed


async def test_an_event_sent_twice_is_stored_once(pool: Pool, bus: Bus) -> None:
    outbox = Outbox(pool, bus.publish)
    async with pool.transaction() as conn:
        await outbox.add(conn, SessionDeleted(aggregate_id="s1", session_id="s1", version=1))

    for _ in range(3):
        await outbox.flush()
        await pool.execute("update outbox set sent_at = null")

    assert len(await bus.stored()) == 1


async def test_a_process_killed_between_commit_and_publish_leaves_its_event_to_the_others(
    pool: Pool, pulse: Pulse, bus: Bus, dsn: str
) -> None:
    program = textwrap.dedent(
        """
        import asyncio, os, signal, sys
        from popagent_db.pool import open_pool
        from popagent_proto.chat.sessions import SessionDeleted
        from popagent_rows.outbox import Outbox
        from popagent_rows.pulse import Pulse

        async def die(subject, payload, msg_id, headers):
            os.kill(os.getpid(), signal.SIGKILL)

        async def main():
            pool = await open_pool(sys.argv[1], application_name="dying")
            outbox = Outbox(pool, die)
            outbox.start(Pulse(pool))
            async with outbox.transaction() as conn:
                await outbox.add(conn, SessionDeleted(aggregate_id="s1", session_id="s1", version=1))
            await asyncio.sleep(30)

        asyncio.run(main())
        """
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, dsn)
    died_of = await process.wait()

    outbox = Outbox(pool, bus.publish)
    outbox.start(pulse)
    await until_sent(outbox)

    await outbox.stop()
    assert died_of == -signal.SIGKILL
    assert len(await bus.stored()) == 1
