from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from popagent_bus import Bus
from popagent_bus.streams import declare
from popagent_db.pool import Pool
from popagent_gateway.streams import event_hub, hub_feed
from popagent_gateway.streams.topics import HEALTH, TOPIC_OF, TOPICS, parse_topics
from popagent_gateway.wiring import Gateway
from popagent_kit import tasks
from popagent_kit.errors import InvalidInputError, UnavailableError
from popagent_kit.ids import new_id
from popagent_proto.base import Event, Message
from popagent_proto.chat.sessions import SessionDeleted
from popagent_proto.chat.workspaces import WorkspaceRegistered
from popagent_proto.common import ChatHealth, HealthView
from popagent_proto.matrix import EVENTS
from popagent_testing.servers import NatsServer

from .conftest import Owner, Served, SseEvent, events_of, make_settings, own_health, serve
from .test_routes import WORKSPACE


def deleted(session_id: str) -> SessionDeleted:
    return SessionDeleted(aggregate_id=session_id, version=1, session_id=session_id)


def registered() -> WorkspaceRegistered:
    return WorkspaceRegistered(aggregate_id="w1", version=1, workspace=WORKSPACE)


async def tell(bus: Bus, event: Event) -> None:
    await bus.publish(event.to_subject(), event.encode(), event.event_id)


@asynccontextmanager
async def following(
    http: httpx2.AsyncClient, topics: str, last_event_id: str | None = None
) -> AsyncIterator[AsyncIterator[SseEvent]]:
    headers = {} if last_event_id is None else {"last-event-id": last_event_id}
    async with (
        asyncio.timeout(20),
        http.stream("GET", "/api/events", params={"topics": topics}, headers=headers) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"] == "text/event-stream"
        yield events_of(answer)


async def test_events_of_the_wanted_topics_arrive_with_their_place(served: Served, chat: Owner) -> None:
    async with following(served.http, "sessions,turns") as stream:
        ready = await anext(stream)
        await tell(chat.bus, registered())
        await tell(chat.bus, deleted("s1"))
        heard = await anext(stream)

    assert (ready.name, json.loads(ready.data)) == ("ready", {"topics": ["sessions", "turns"]})
    assert heard.name == "sessions"
    assert json.loads(heard.data)["name"] == "sessions-deleted"
    assert json.loads(heard.data)["event"]["sessionId"] == "s1"
    assert ready.id is not None
    assert heard.id is not None
    assert int(heard.id.split("-")[1]) - int(ready.id.split("-")[1]) == 2


async def test_who_comes_back_gets_what_was_missed_in_order(served: Served, chat: Owner) -> None:
    async with following(served.http, "sessions") as stream:
        place = (await anext(stream)).id
    sent = [new_id() for _ in range(50)]
    for session_id in sent:
        await tell(chat.bus, deleted(session_id))

    async with following(served.http, "sessions", place) as stream:
        ready = await anext(stream)
        heard = [json.loads((await anext(stream)).data)["event"]["sessionId"] for _ in sent]
    async with following(served.http, "sessions", place) as stream:
        await anext(stream)
        first = await anext(stream)
    async with following(served.http, "sessions", first.id) as stream:
        await anext(stream)
        second = json.loads((await anext(stream)).data)["event"]["sessionId"]

    assert (ready.name, ready.id) == ("ready", place)
    assert heard == sent
    assert second == sent[1]


@pytest.mark.parametrize("place", ["000000000000-1", "nonsense", "", "{}-999999999999", "{}--1", "{}-0x1"])
async def test_a_place_that_cannot_be_known_gives_resync_and_the_newest_place(served: Served, place: str) -> None:
    async with following(served.http, "sessions") as stream:
        newest = (await anext(stream)).id
    assert newest is not None
    identity = newest.split("-")[0]

    async with following(served.http, "sessions", place.format(identity)) as stream:
        first = await anext(stream)

    assert (first.name, first.id) == ("resync", newest)


async def test_a_range_that_the_stream_no_longer_has_gives_resync(private_nats: NatsServer, pool: Pool) -> None:
    async with gateway_on(private_nats, pool) as (client, gateway):
        bus = gateway.hub.bus
        async with following(client, "sessions") as stream:
            place = (await anext(stream)).id
        for _ in range(5):
            await tell(bus, deleted("s1"))
        await bus.js.purge_stream(EVENTS, keep=1)
        async with following(client, "sessions", place) as stream:
            ready, second = await anext(stream), await anext(stream)
            await tell(bus, deleted("s2"))
            third = await anext(stream)

    assert [event.name for event in (ready, second, third)] == ["ready", "resync", "sessions"]


async def test_a_wiped_nats_gives_resync_with_a_new_identity(
    private_nats: NatsServer, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_feed, "AGAIN_S", 0.05)
    async with gateway_on(private_nats, pool) as (client, gateway):
        await tell(gateway.hub.bus, deleted("s1"))
        async with following(client, "sessions") as stream:
            ready = await anext(stream)
            private_nats.stop()
            private_nats.wipe()
            await declare(private_nats.url)
            resync = await anext(stream)
            await tell(gateway.hub.bus, deleted("s2"))
            heard = await anext(stream)

    assert (ready.name, resync.name, heard.name) == ("ready", "resync", "sessions")
    assert ready.id is not None
    assert resync.id is not None
    assert ready.id.split("-")[0] != resync.id.split("-")[0]


@asynccontextmanager
async def gateway_on(nats: NatsServer, pool: Pool) -> AsyncIterator[tuple[httpx2.AsyncClient, Gateway]]:
    await declare(nats.url)
    bus = await Bus.connect(nats.url, service="gateway")
    gateway = Gateway(make_settings(), bus, pool, own_health)
    await gateway.start()
    server, task = await serve(gateway, make_settings(port=0))
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client:
        yield client, gateway
    server.ask_to_exit()
    await task
    await gateway.stop()
    await bus.drain()


async def test_a_lost_wake_up_costs_a_tick_and_no_event(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_feed, "TICK_S", 0.05)
    async with following(served.http, "sessions") as stream:
        await anext(stream)
        served.gateway.hub._listeners, lost = set(), served.gateway.hub._listeners
        await tell(chat.bus, deleted("s1"))
        heard = await anext(stream)
        served.gateway.hub._listeners = lost

    assert heard.name == "sessions"


async def test_an_event_that_was_heard_before_it_was_stored_is_read_soon(served: Served, chat: Owner) -> None:
    async with following(served.http, "sessions") as stream, asyncio.timeout(hub_feed.TICK_S / 2):
        await anext(stream)
        # Heard by the hub, and nothing read.
        served.gateway.hub._listeners, lost = set(), served.gateway.hub._listeners
        await tell(chat.bus, deleted("s1"))
        await served.gateway.hub.bus.flush()
        served.gateway.hub._listeners = lost
        heard = await anext(stream)

    assert heard.name == "sessions"


async def test_an_event_that_nobody_heard_after_a_reconnection_is_read_soon(
    private_nats: NatsServer, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Far enough for a slow machine.
    monkeypatch.setattr(event_hub, "LOOK_AFTER_RECONNECTION_S", tuple(float(late) for late in range(1, 10)))
    monkeypatch.setattr(event_hub, "LOOK_AGAIN_S", 60.0)
    monkeypatch.setattr(hub_feed, "AGAIN_S", 0.05)
    async with gateway_on(private_nats, pool) as (client, gateway):
        bus = gateway.hub.bus
        async with following(client, "sessions") as stream:
            await anext(stream)
            private_nats.kill()
            private_nats.start()
            await until_told(bus, deleted("s1"))
            await anext(stream)
            [heard_by] = [one for one in bus.client._subs.values() if one.subject == event_hub.ALL_EVENTS]
            await heard_by.unsubscribe()
            await tell(bus, deleted("s2"))
            async with asyncio.timeout(hub_feed.TICK_S - 4):
                second = await anext(stream)

    assert json.loads(second.data)["event"]["sessionId"] == "s2"


async def until_told(bus: Bus, event: Event) -> None:
    while True:
        try:
            return await tell(bus, event)
        except UnavailableError:
            await asyncio.sleep(0.05)


async def test_events_of_other_topics_do_not_keep_the_heartbeat_away(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_feed, "TICK_S", 0.3)

    async def others() -> None:
        while True:
            await tell(chat.bus, registered())

    async with (
        asyncio.timeout(10),
        served.http.stream("GET", "/api/events", params={"topics": "sessions"}) as answer,
    ):
        talk = asyncio.create_task(others())
        beats = 0
        async for line in answer.aiter_lines():
            beats += line == ": ping"
            if beats == 2:
                break
        await tasks.end(talk)

    assert beats == 2


async def test_health_is_watched_while_somebody_listens(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_hub, "HEALTH_S", 0.05)
    chat.answer(ChatHealth, HealthView(service="chat", version="1", ready=True, checks={"postgres": "ok"}))
    async with following(served.http, HEALTH) as stream:
        ready, first = await anext(stream), await anext(stream)
        chat.answer(ChatHealth, HealthView(service="chat", version="1", ready=False, checks={"postgres": "gone"}))
        second = await anext(stream)

    assert (ready.name, first.name, second.name) == ("ready", "health", "health")
    assert json.loads(first.data)["checks"]["postgres"] == "ok"
    assert json.loads(second.data)["checks"]["postgres"] == "gone"
    assert second.id is None


async def test_a_stream_ends_when_the_door_closes_and_is_forgotten_when_its_client_leaves(served: Served) -> None:
    async with following(served.http, "turns") as stream:
        await anext(stream)
        async with following(served.http, "turns") as other:
            await anext(other)
            assert len(served.gateway.hub._listeners) == 2
        async with asyncio.timeout(5):
            while len(served.gateway.hub._listeners) > 1:
                await asyncio.sleep(0.01)
        served.server.ask_to_exit()
        rest = [event async for event in stream]

    assert rest == []


async def test_without_nats_the_stream_is_refused_before_it_begins(private_nats: NatsServer, pool: Pool) -> None:
    async with gateway_on(private_nats, pool) as (client, _):
        private_nats.kill()
        answer = await client.get("/api/events?topics=turns")
        private_nats.start()

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


def test_every_event_of_the_contracts_belongs_to_a_topic() -> None:
    known = {subject for subject, message in Message.registry.items() if issubclass(message, Event)}

    assert set(TOPIC_OF) == known
    assert parse_topics(",".join(TOPICS)) == set(TOPICS)


@pytest.mark.parametrize("text", ["", ",", "session", "sessions,", "sessions;turns", "*", "sessions,>"])
def test_unknown_topics_are_refused_by_name(text: str) -> None:
    if text == "sessions,":
        assert parse_topics(text) == {"sessions"}
        return
    with pytest.raises(InvalidInputError) as refused:
        parse_topics(text)
    assert refused.value.field == "topics"
