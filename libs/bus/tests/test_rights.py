"""Each trespass is tried with the real users of the generated configuration, and refused by the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import nats
import nats.errors
import pytest
from nats.js import api

from popagent_bus import Bus
from popagent_bus.live import Frame
from popagent_bus.state import REFUSALS_KEPT
from popagent_kit import json
from popagent_kit.errors import ConfigurationError, UnavailableError
from popagent_proto import matrix
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs, until

Trespass = Callable[[Bus], Awaitable[Any]]


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


def publish(subject: str) -> Trespass:
    return lambda bus: bus.client.publish(subject, b"{}")


def api_request(subject: str, **body: Any) -> Trespass:
    return lambda bus: bus.client.publish(f"$JS.API.{subject}", json.dumps(body), reply=bus.client.new_inbox())


def subscribe(subject: str) -> Trespass:
    async def nothing(_: Any) -> None: ...

    return lambda bus: bus.client.subscribe(subject, cb=nothing)


def create_consumer(stream: str, name: str, deliver: str | None = None) -> Trespass:
    config = api.ConsumerConfig(durable_name=name, deliver_subject=deliver).as_dict()
    return api_request(f"CONSUMER.CREATE.{stream}.{name}", stream_name=stream, config=config)


TRESPASSES: dict[str, list[tuple[str, Trespass]]] = {
    "chat": [
        ("another's event", publish("popagent.scheduler.evt.schedules-changed.v1")),
        ("another's live stream", publish("popagent.task-runner.live.tasks-frames.v1.t1")),
        ("another's telemetry", publish("popagent.gateway.telemetry.batch.v1")),
        ("another's dlq", publish("popagent.observability.dlq.observability-events.v1")),
        ("another's wake-up", publish("popagent.task-runner.wake.tasks.v1")),
        ("a command to one it may not ask", publish("popagent.gateway.cmd.audit-clear.v1")),
        ("a query to one it may not ask", publish("popagent.observability.qry.traces-list.v1")),
        ("another's inbox", publish("_INBOX_gateway.abc.def")),
        ("another's durable: fetch", api_request("CONSUMER.MSG.NEXT.EVENTS.observability-events", batch=1)),
        ("another's durable: info", api_request("CONSUMER.INFO.EVENTS.observability-events")),
        ("another's durable: deletion", api_request("CONSUMER.DELETE.EVENTS.observability-events")),
        ("another's durable: forged ack", publish("$JS.ACK.EVENTS.observability-events.1.1.1.1.1")),
        ("a consumer", create_consumer("EVENTS", "mine")),
        (
            "a consumer that delivers to a command",
            create_consumer("EVENTS", "x", "popagent.task-runner.cmd.tasks-create.v1"),
        ),
        ("another's live store", api_request("DIRECT.GET.LIVE_TASK_RUNNER", seq=1)),
        ("the event store", api_request("DIRECT.GET.EVENTS", seq=1)),
        ("the dlq's store", api_request("DIRECT.GET.DLQ", seq=1)),
        ("stream info of telemetry", api_request("STREAM.INFO.TELEMETRY")),
        ("a purge", api_request("STREAM.PURGE.EVENTS")),
        ("a stream's deletion", api_request("STREAM.DELETE.LIVE_CHAT")),
        ("a stream's making", api_request("STREAM.CREATE.MINE", name="MINE", subjects=["mine.>"])),
        ("a stream's change", api_request("STREAM.UPDATE.EVENTS", name="EVENTS")),
        ("a message read by number", api_request("STREAM.MSG.GET.EVENTS", seq=1)),
        ("a message's deletion", api_request("STREAM.MSG.DELETE.EVENTS", seq=1)),
        ("account info", api_request("INFO")),
        ("stream names", api_request("STREAM.NAMES")),
        ("the server's system subjects", publish("$SYS.REQ.SERVER.PING")),
        ("everything", subscribe(">")),
        ("another's commands", subscribe("popagent.task-runner.cmd.>")),
        ("another's replies", subscribe("_INBOX_gateway.>")),
        ("all replies", subscribe("_INBOX.>")),
        ("another's live frames", subscribe("popagent.task-runner.live.>")),
        ("all events", subscribe("popagent.*.evt.>")),
        ("advisories", subscribe("$JS.EVENT.>")),
    ],
    "gateway": [
        ("a live frame", publish("popagent.chat.live.turns-frames.v1.t1")),
        ("an event of chat", publish("popagent.chat.evt.turns-ended.v1")),
        ("a purge of a live stream", api_request("STREAM.PURGE.LIVE_CHAT")),
        ("a live stream's deletion", api_request("STREAM.DELETE.LIVE_CHAT")),
        ("a consumer of live frames", create_consumer("LIVE_CHAT", "mine")),
        ("a consumer of events", create_consumer("EVENTS", "mine")),
        ("the telemetry store", api_request("DIRECT.GET.TELEMETRY", seq=1)),
        ("a command as if it were chat's answerer", subscribe("popagent.chat.cmd.>")),
    ],
    "scheduler": [
        ("a command to docs-indexer", publish("popagent.docs-indexer.cmd.pages-save.v1")),
        ("the blob store", publish("$O.blobs.C.id")),
        ("blobs", api_request("DIRECT.GET.OBJ_blobs", seq=1)),
        ("live frames", subscribe("popagent.chat.live.>")),
    ],
    "task-runner": [
        ("chat's durable: fetch", api_request("CONSUMER.MSG.NEXT.EVENTS.chat-events", batch=1)),
        ("chat's durable: forged ack", publish("$JS.ACK.EVENTS.chat-events.1.1.1.1.1")),
        ("an event of chat", publish("popagent.chat.evt.channels-message.v1")),
    ],
    "observability": [
        ("a command to anybody", publish("popagent.chat.cmd.turns-start.v1")),
        ("an event of another", publish("popagent.chat.evt.turns-ended.v1")),
        ("live frames", subscribe("popagent.chat.live.>")),
    ],
}


@pytest.mark.parametrize(
    ("service", "trespass"),
    [
        pytest.param(service, trespass, id=f"{service}: {what}")
        for service, tried in TRESPASSES.items()
        for what, trespass in tried
    ],
)
async def test_a_trespass_is_refused_and_makes_the_trespasser_unready(
    connect_as: ConnectAs, service: str, trespass: Trespass
) -> None:
    bus = await connect_as(service)

    await trespass(bus)
    await bus.flush()
    await until(lambda: bool(bus.state.permission_errors), timeout_s=2)

    assert "permissions violation" in (bus.state.problem() or "").lower()


def beyond(row: matrix.ServiceRow) -> dict[str, Trespass]:
    """What the table grants `row` nowhere, by subject; a new service, stream or consumer is tried unasked."""
    published: list[str] = []
    heard: list[str] = []
    for other in matrix.SERVICES:
        if other is row:
            continue
        kinds = ["evt", "wake", "telemetry", "dlq", "live"]
        kinds += [] if other.name in row.asks else ["cmd", "qry"]
        published += [f"popagent.{other.name}.{kind}.tests-trespass.v1" for kind in kinds]
        published.append(f"{other.inbox_prefix}.a.b")
        kinds = ["cmd", "qry", "wake", "telemetry", "dlq"]
        kinds += [] if row.watches else ["live", "evt"]
        heard += [f"popagent.{other.name}.{kind}.>" for kind in kinds]
        heard.append(f"{other.inbox_prefix}.>")
    for stream in matrix.STREAMS:
        calls = ["CREATE", "UPDATE", "DELETE", "PURGE", "MSG.GET", "MSG.DELETE"]
        calls += [] if stream.name == matrix.EVENTS else ["INFO"]
        published += [f"$JS.API.STREAM.{call}.{stream.name}" for call in calls]
        published.append(f"$JS.API.CONSUMER.CREATE.{stream.name}.mine")
        own = row.writes_live and stream.name == matrix.live_stream(row.name)
        if not own and not (row.watches and (stream.name == matrix.EVENTS or stream.name.startswith("LIVE_"))):
            published.append(f"$JS.API.DIRECT.GET.{stream.name}")
    for consumer in matrix.CONSUMERS:
        place = f"{consumer.stream}.{consumer.name}"
        published += [f"$JS.API.CONSUMER.{call}.{place}" for call in ("DELETE", "DURABLE.CREATE")]
        if consumer.owner != row.name:
            published += [f"$JS.API.CONSUMER.{call}.{place}" for call in ("INFO", "MSG.NEXT")]
            published.append(f"$JS.ACK.{place}.1.1.1.1.1")
    if not row.blobs:
        published += [f"$O.{matrix.BLOBS}.C.x", f"$O.{matrix.BLOBS}.M.x", f"$JS.API.DIRECT.GET.OBJ_{matrix.BLOBS}"]
    return {subject: publish(subject) for subject in published} | {subject: subscribe(subject) for subject in heard}


def batches(subjects: list[str], size: int) -> list[list[str]]:
    return [subjects[at : at + size] for at in range(0, len(subjects), size)]


def unseen(bus: Bus, refused: list[str]) -> list[str]:
    return [subject for subject in refused if not any(subject in error for error in bus.state.refusals)]


@pytest.mark.parametrize("row", matrix.SERVICES, ids=lambda row: row.name)
async def test_what_the_table_does_not_grant_is_refused(connect_as: ConnectAs, row: matrix.ServiceRow) -> None:
    tried = beyond(row)
    bus = await connect_as(row.name)

    for batch in batches(list(tried), REFUSALS_KEPT):
        for subject in batch:
            await tried[subject](bus)
        await bus.flush()
        refused = [f'"{subject}"'.lower() for subject in batch]
        with contextlib.suppress(AssertionError):  # what is missing is told below
            await until(lambda refused=refused: not unseen(bus, refused), timeout_s=5)
        assert unseen(bus, refused) == []

    assert len(tried) > 100


async def test_nothing_that_a_service_does_by_right_is_refused(connect_as: ConnectAs) -> None:
    buses = {name: await connect_as(name) for name in matrix.BY_NAME}

    for name, bus in buses.items():
        row = matrix.BY_NAME[name]
        await bus.publish(f"popagent.{name}.evt.tests-unheard.v1", b"{}", f"right-{name}")
        await bus.send_telemetry(b"{}")
        await bus.wake(matrix.wake_subject(name, "tests"))
        await bus.stream_state(matrix.EVENTS)
        for other in row.asks:
            await bus.client.publish(f"popagent.{other}.qry.tests-unknown.v1", b"{}", reply=bus.client.new_inbox())
        if row.writes_live:
            subject = matrix.live_subject(name, "tests", "t1")
            await bus.client.publish(subject, Frame(0, 1, "E", b"data: {}\n\n").encode())
            await bus.direct_get(matrix.live_stream(name), subject)
        if row.hears:
            await bus.js.consumer_info(matrix.EVENTS, matrix.event_consumer(name))
        if row.watches:
            await bus.direct_get(matrix.EVENTS, "popagent.*.evt.>")
        await bus.flush()

    assert {name: bus.state.permission_errors for name, bus in buses.items()} == {name: [] for name in buses}


async def test_a_stranger_does_not_get_in(suite_nats: NatsServer) -> None:
    for user, password in ((None, None), ("popagent_chat", "wrong"), ("nobody", "x")):
        with pytest.raises((ConfigurationError, UnavailableError)):
            await Bus.connect(suite_nats.url, service="chat", user=user, password=password, timeout_s=3)


async def test_a_second_and_an_uninvited_reply_are_refused(connect_as: ConnectAs) -> None:
    gateway, chat = await connect_as("gateway"), await connect_as("chat")
    replies: list[bytes] = []

    async def answer_twice(message: Any) -> None:
        await chat.client.publish(message.reply, b"one")
        await chat.client.publish(message.reply, b"two")

    async def take(message: Any) -> None:
        replies.append(message.data)

    await chat.client.subscribe("popagent.chat.qry.tests-twice.v1", cb=answer_twice)
    await chat.flush()
    inbox = gateway.client.new_inbox()
    await gateway.client.subscribe(inbox, cb=take)
    await gateway.client.publish("popagent.chat.qry.tests-twice.v1", b"{}", reply=inbox)
    await until(lambda: bool(chat.state.permission_errors), timeout_s=2)
    await chat.flush()
    await gateway.flush()
    await asyncio.sleep(0)

    assert replies == [b"one"]


async def test_with_another_s_inbox_prefix_no_reply_arrives(suite_nats: NatsServer) -> None:
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error))

    client = await nats.connect(
        suite_nats.url, user="popagent_chat", password=PASSWORDS["chat"], inbox_prefix="_INBOX_gateway", error_cb=note
    )
    with pytest.raises(nats.errors.TimeoutError):
        await client.request("popagent.scheduler.qry.tests-x.v1", b"{}", timeout=0.3)
    await client.close()

    assert any("permissions violation" in error for error in errors)
