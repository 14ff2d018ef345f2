from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2

from popagent_bus import Bus
from popagent_bus.streams import declare
from popagent_db.pool import Pool
from popagent_gateway.wiring import Gateway
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import SessionDeleted
from popagent_proto.chat.turns import SnapshotTurn, StartTurn, TurnView
from popagent_proto.common import ChatHealth, HealthView
from popagent_proto.matrix import ADMIN_USER, SERVICES, nats_authorization
from popagent_testing.servers import NatsServer
from popagent_uistream.encode import DONE, encode_all

from .conftest import Served, events_of, make_settings, own_health, requests_of, serve, start_owner
from .test_chat_streams import CLOSE, FINISH, OPEN, START, Speaker, body, snapshot, stream, view, words

PASSWORDS = {"admin": "admin-password", **{row.name: f"{row.name}-password" for row in SERVICES}}


async def test_nats_killed_in_mid_turn_costs_no_chunk(private_nats: NatsServer, pool: Pool) -> None:
    await declare(private_nats.url)
    chat = await start_owner(private_nats.url, "chat", requests_of("chat"))
    bus = await Bus.connect(private_nats.url, service="gateway")
    gateway = Gateway(make_settings(), bus, pool, own_health)
    server, serving = await serve(gateway, make_settings(port=0))
    turn_id = new_id()
    said = [START, OPEN, *words(400), CLOSE, FINISH]
    speaker = Speaker(chat.bus, turn_id)
    chat.answer(SnapshotTurn, snapshot(turn_id, [], 0))

    async with (
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as http,
        stream(http, "GET", "/api/chat/s1/stream") as answer,
    ):
        reading = asyncio.create_task(answer.aread())
        for number, chunk in enumerate(said[:-1]):
            if number == 150:
                private_nats.kill()
            if number == 250:
                private_nats.start()
            speaker.say(chunk)
            await asyncio.sleep(0.001)
        speaker.end(said[-1])
        text = await reading

    assert text == encode_all(said) + DONE
    speaker.publisher.close()
    server.ask_to_exit()
    await serving
    await chat.bus.drain()
    await bus.drain()


async def test_the_whole_path_works_with_the_rights_that_the_matrix_gives(
    make_nats: Callable[[str], NatsServer], pool: Pool
) -> None:
    nats = make_nats(nats_authorization(PASSWORDS))
    await declare(nats.url, ADMIN_USER, PASSWORDS["admin"])
    credentials = {name: {"user": f"popagent_{name}", "password": PASSWORDS[name]} for name in ("gateway", "chat")}
    bus = await Bus.connect(nats.url, service="gateway", **credentials["gateway"])
    chat = await start_owner(nats.url, "chat", requests_of("chat"), **credentials["chat"])
    gateway = Gateway(make_settings(), bus, pool, own_health)
    await gateway.start()
    server, serving = await serve(gateway, make_settings(port=0))
    said = [START, OPEN, *words(50), CLOSE, FINISH]
    turn_ids: list[str] = []

    def start(command: StartTurn) -> TurnView:
        turn_ids.append(command.turn_id)
        Speaker(chat.bus, command.turn_id).end(*said)
        return view(command.turn_id)

    chat.answer(StartTurn, start)
    chat.answer(SnapshotTurn, lambda _: snapshot(turn_ids[0], [], 0))
    chat.answer(ChatHealth, HealthView(service="chat", version="1", ready=True))

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as http:
        async with asyncio.timeout(20), http.stream("GET", "/api/events?topics=sessions") as events:
            heard = events_of(events)
            await anext(heard)
            event = SessionDeleted(aggregate_id="s1", version=1, session_id="s1")
            await chat.bus.publish(event.subject, event.encode(), event.event_id)
            told = await anext(heard)
        first = await http.post("/api/chat", json=body())
        again = await http.get("/api/chat/s1/stream")
        health = await http.get("/api/health")

    assert first.content == again.content == encode_all(said) + DONE
    assert told.name == "sessions"
    assert {view["service"] for view in health.json()["services"] if view["ready"]} == {"gateway", "chat"}
    assert bus.state.permission_errors == chat.bus.state.permission_errors == []
    server.ask_to_exit()
    await serving
    await gateway.stop()
    await chat.bus.drain()
    await bus.drain()


async def test_a_killed_gateway_is_forgotten_and_another_one_shows_the_whole_turn(
    served: Served, bus: Bus, pool: Pool, nats_url: str
) -> None:
    chat = await start_owner(nats_url, "chat", requests_of("chat"))
    turn_id = new_id()
    said = [START, OPEN, *words(40), CLOSE, FINISH]
    speaker = Speaker(chat.bus, turn_id)
    chat.answer(SnapshotTurn, snapshot(turn_id, [], 0))
    other = Gateway(make_settings(), bus, pool, own_health)
    server, serving = await serve(other, make_settings(port=0))

    async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
        speaker.say(*said[:20])
        await anext(answer.aiter_lines())
    async with (
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as http,
        stream(http, "GET", "/api/chat/s1/stream") as resumed,
    ):
        speaker.say(*said[20:30])
        speaker.end(*said[30:])
        text = await resumed.aread()

    assert text == encode_all(said) + DONE
    server.ask_to_exit()
    await serving
    await chat.bus.drain()
