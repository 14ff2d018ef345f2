from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.types import Message

from popagent_bus import Bus
from popagent_bus.live import LivePublisher
from popagent_gateway.streams import sse
from popagent_gateway.streams import turn as turn_streams
from popagent_gateway.streams.events import EventFeed
from popagent_kit.errors import ConflictError, NotFoundError
from popagent_kit.ids import new_id
from popagent_proto.chat.turns import SnapshotTurn, StartTurn, StopTurn, TurnSnapshotView, TurnView
from popagent_proto.matrix import EVENTS, live_subject
from popagent_uistream import chunks
from popagent_uistream.encode import DONE, encode, encode_all

from .conftest import Owner, Served

START = chunks.start(message_id="a1")
OPEN = chunks.text_start("t1")
CLOSE = chunks.text_end("t1")
FINISH = chunks.finish()


def words(count: int, prefix: str = "w") -> list[chunks.Chunk]:
    return [chunks.text_delta("t1", f"{prefix}{number} ") for number in range(count)]


class Speaker:
    """What the owner of a turn says, chunk by chunk."""

    def __init__(self, bus: Bus, turn_id: str, next_chunk: int = 0) -> None:
        self.publisher = LivePublisher(bus, live_subject("chat", "turns", turn_id))
        self.next_chunk = next_chunk

    def say(self, *said: chunks.Chunk) -> None:
        self.publisher.send(self.next_chunk, len(said), encode_all(list(said)))
        self.next_chunk += len(said)

    def end(self, *said: chunks.Chunk) -> None:
        self.publisher.send(self.next_chunk, len(said), encode_all(list(said)) + DONE, end=True)


def view(turn_id: str, **values: Any) -> TurnView:
    return TurnView(
        **{"turn_id": turn_id, "session_id": "s1", "message_id": "a1", "state": "running", "created": True, **values}
    )


def body(text: str = "Hello") -> dict[str, Any]:
    return {"id": "s1", "message": {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}}


def snapshot(turn_id: str, said: list[chunks.Chunk], next_chunk: int, state: str = "running") -> TurnSnapshotView:
    sse = encode_all(said) + (b"" if state == "running" else DONE)
    return TurnSnapshotView.model_validate(
        {"turn_id": turn_id, "message_id": "a1", "state": state, "next_chunk": next_chunk, "sse": sse.decode()}
    )


@asynccontextmanager
async def stream(http: httpx2.AsyncClient, method: str, path: str, **more: Any) -> AsyncIterator[httpx2.Response]:
    async with asyncio.timeout(40), http.stream(method, path, **more) as answer:
        yield answer


def chunks_in(text: str) -> list[dict[str, Any]]:
    """Parse a stream that ended properly."""
    events = [part for part in text.split("\n\n") if part and not part.startswith(":")]
    assert events[-1] == "data: [DONE]", events[-1]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]


async def test_a_turn_streams_its_owners_bytes_as_they_are(served: Served, chat: Owner) -> None:
    said = [START, OPEN, *words(200), CLOSE, FINISH]

    def start(command: StartTurn) -> TurnView:
        speaker = Speaker(chat.bus, command.turn_id)
        speaker.say(*said[:5])
        speaker.say(*said[5:100])
        speaker.end(*said[100:])
        return view(command.turn_id)

    chat.answer(StartTurn, start)

    async with stream(served.http, "POST", "/api/chat", json={**body(), "model": "m", "workspaceId": "w1"}) as answer:
        text = (await answer.aread()).decode()

    command: StartTurn = chat.last()
    assert text.encode() == encode_all(said) + DONE
    assert {
        name: answer.headers[name] for name in ("content-type", "cache-control", "x-vercel-ai-ui-message-stream")
    } == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-vercel-ai-ui-message-stream": "v1",
    }
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-popagent-turn-id"] == command.turn_id
    assert (command.session_id, command.model, command.workspace_id, command.trigger) == (
        "s1",
        "m",
        "w1",
        "submit-message",
    )
    assert command.message is not None
    assert command.message.parts[0].text == "Hello"


async def test_the_first_words_arrive_while_the_turn_runs(served: Served, chat: Owner) -> None:
    speakers: list[Speaker] = []

    def start(command: StartTurn) -> TurnView:
        speakers.append(Speaker(chat.bus, command.turn_id))
        return view(command.turn_id)

    chat.answer(StartTurn, start)

    async with stream(served.http, "POST", "/api/chat", json=body()) as answer:
        lines = answer.aiter_lines()
        speakers[0].say(START)
        first = await anext(lines)
        speakers[0].end(FINISH)
        rest = [line async for line in lines]

    assert json.loads(first.removeprefix("data: ")) == START
    assert rest[-2:] == ["data: [DONE]", ""]


async def test_the_idempotency_key_is_the_turns_id(served: Served, chat: Owner) -> None:
    def start(command: StartTurn) -> TurnView:
        Speaker(chat.bus, command.turn_id).end(START, FINISH)
        return view(command.turn_id)

    chat.answer(StartTurn, start)
    key = new_id()

    async with stream(served.http, "POST", "/api/chat", json=body(), headers={"idempotency-key": key}) as answer:
        await answer.aread()

    assert chat.last().turn_id == key
    assert answer.headers["x-popagent-turn-id"] == key


async def test_a_refused_turn_is_json_and_leaves_no_subscription(served: Served, chat: Owner) -> None:
    chat.answer(StartTurn, ConflictError("A turn is running.", extra={"turnId": "t9"}))
    await served.http.post("/api/chat", json=body())
    before = subscriptions(served)

    answer = await served.http.post("/api/chat", json=body())

    assert (answer.status_code, answer.json()) == (
        409,
        {"error": "A turn is running.", "code": "conflict", "turnId": "t9"},
    )
    assert subscriptions(served) == before


async def test_the_same_message_again_follows_the_turn_that_runs(served: Served, chat: Owner) -> None:
    running = new_id()
    speaker = Speaker(chat.bus, running)
    speaker.say(START, OPEN, *words(3))
    chat.answer(StartTurn, view(running, created=False))
    chat.answer(SnapshotTurn, snapshot(running, [START, OPEN, *words(3)], 5))

    async with stream(served.http, "POST", "/api/chat", json=body()) as answer:
        speaker.end(*words(2, "x"), CLOSE, FINISH)
        text = (await answer.aread()).decode()

    assert chunks_in(text) == [START, OPEN, *words(3), *words(2, "x"), CLOSE, FINISH]
    assert answer.headers["x-popagent-turn-id"] == running
    assert chat.last() == SnapshotTurn(session_id="s1", turn_id=running)


async def test_the_same_message_of_a_turn_that_ended_gives_its_whole_answer(served: Served, chat: Owner) -> None:
    ended = new_id()
    said = [START, OPEN, *words(3), CLOSE, FINISH]
    chat.answer(StartTurn, view(ended, created=False, state="completed"))
    chat.answer(SnapshotTurn, snapshot(ended, said, len(said), "completed"))

    async with stream(served.http, "POST", "/api/chat", json=body()) as answer:
        text = (await answer.aread()).decode()

    assert chunks_in(text) == said


async def test_nothing_to_join_is_204_also_for_an_unknown_session(served: Served, chat: Owner) -> None:
    chat.answer(SnapshotTurn, NotFoundError())

    answer = await served.http.get("/api/chat/unknown/stream")

    assert (answer.status_code, answer.content) == (204, b"")


async def test_who_joins_late_gets_the_snapshot_and_every_frame_after_it(served: Served, chat: Owner) -> None:
    turn_id = new_id()
    said = words(500)
    speaker = Speaker(chat.bus, turn_id)
    speaker.say(START, OPEN)
    for number in range(0, 400, 7):
        speaker.say(*said[number : min(number + 7, 400)])
    await chat.bus.flush()
    # The checkpoint is older than what was said, and lies inside a frame.
    chat.answer(SnapshotTurn, snapshot(turn_id, [START, OPEN, *said[:250]], 252))

    async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
        for word in said[400:]:
            speaker.say(word)
        speaker.end(CLOSE, FINISH)
        text = (await answer.aread()).decode()

    assert chunks_in(text) == [START, OPEN, *said, CLOSE, FINISH]


async def test_any_number_of_clients_see_the_same_turn(served: Served, chat: Owner) -> None:
    turn_id = new_id()
    speaker = Speaker(chat.bus, turn_id)
    chat.answer(SnapshotTurn, snapshot(turn_id, [], 0))
    said = [START, OPEN, *words(300), CLOSE, FINISH]

    async def watch() -> str:
        async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
            return (await answer.aread()).decode()

    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(watch()) for _ in range(10)]
        for chunk in said[:-1]:
            speaker.say(chunk)
            await asyncio.sleep(0)
        speaker.end(said[-1])

    assert {task.result() for task in watching} == {(encode_all(said) + DONE).decode()}


async def test_stop_is_asked_of_the_owner_and_nothing_to_stop_is_404(served: Served, chat: Owner) -> None:
    chat.answer(StopTurn, view("t1", created=False))
    stopped = await served.http.post("/api/chat/s1/stop")
    chat.answer(StopTurn, NotFoundError("Nothing is running in this session."))
    nothing = await served.http.post("/api/chat/s1/stop")

    assert (stopped.status_code, stopped.json()["turnId"]) == (200, "t1")
    assert nothing.status_code == 404


async def test_a_client_that_leaves_stops_nothing_and_leaves_no_subscription(served: Served, chat: Owner) -> None:
    turn_id = new_id()
    chat.answer(SnapshotTurn, snapshot(turn_id, [START], 1))
    chat.answer(StopTurn, NotFoundError())
    await served.http.post("/api/chat/s1/stop")  # makes the bus subscribe to its replies
    before = subscriptions(served)

    async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
        await anext(answer.aiter_lines())
        assert subscriptions(served) > before
    async with asyncio.timeout(5):
        while subscriptions(served) > before:
            await asyncio.sleep(0.01)

    assert [type(request) for request in chat.asked] == [StopTurn, SnapshotTurn]


@pytest.mark.parametrize("kind", ["turn", "events"])
async def test_an_answer_that_is_cancelled_before_its_first_byte_leaves_nothing_behind(
    served: Served, kind: str
) -> None:
    hub, bus = served.gateway.hub, served.gateway.hub.bus
    await bus.stream_state(EVENTS)  # makes the bus subscribe to its replies
    before = subscriptions(served)
    feed: turn_streams.TurnFeed | EventFeed
    if kind == "turn":
        feed = turn_streams.TurnFeed(bus, "s1", new_id(), is_new=True)
        await feed.subscribe()
    else:
        feed = EventFeed(hub, frozenset({"turns"}), None)
        await feed.open()
    held = subscriptions(served) - before + len(hub._listeners)

    async def receive() -> Message:
        return await asyncio.Future()

    async def send(message: Message) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await sse.EventStream(feed, served.gateway.closing)({"type": "http"}, receive, send)

    assert held == 1
    assert subscriptions(served) == before
    assert not hub._listeners
    assert not served.gateway.closing._listeners


def subscriptions(served: Served) -> int:
    bus: Bus = served.gateway.api.state.bus
    return len(bus.client._subs)


async def test_silence_is_filled_with_heartbeats_and_a_living_turn_goes_on(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_streams, "HEARTBEAT_S", 0.03)
    monkeypatch.setattr(turn_streams, "SILENCE_S", 0.1)
    turn_id = new_id()
    chat.answer(SnapshotTurn, snapshot(turn_id, [START], 1))

    async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
        lines = answer.aiter_lines()
        pings = 0
        while len(chat.asked) < 4:
            pings += (await anext(lines)) == ": ping"
        Speaker(chat.bus, turn_id, 1).end(FINISH)
        rest = [line async for line in lines if line.startswith("data")]

    assert pings >= 6
    assert chat.asked[1:] == [SnapshotTurn(session_id="s1", turn_id=turn_id)] * (len(chat.asked) - 1)
    assert rest == [encode(FINISH).decode().strip(), "data: [DONE]"]


@pytest.mark.parametrize(
    ("later", "words_in_end"),
    [
        ("unanswered", "went silent"),
        ("over", "did not arrive"),
        ("unknown", "did not arrive"),
        ("ahead", "did not arrive"),
    ],
)
async def test_a_silent_turn_ends_for_the_client_in_words_and_can_be_resumed(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch, later: str, words_in_end: str
) -> None:
    monkeypatch.setattr(turn_streams, "HEARTBEAT_S", 0.03)
    monkeypatch.setattr(turn_streams, "SILENCE_S", 0.1)
    monkeypatch.setattr(turn_streams, "STATE_TIMEOUT_S", 0.2)
    turn_id = new_id()
    released = asyncio.Event()

    async def hang() -> TurnSnapshotView:
        await released.wait()
        return snapshot(turn_id, [START], 1)

    answers: dict[str, Any] = {
        "unanswered": hang,
        "over": lambda: snapshot(turn_id, [START, FINISH], 2, "completed"),
        "unknown": NotFoundError,
        "ahead": lambda: snapshot(turn_id, [START, OPEN], 2),
    }
    first = [snapshot(turn_id, [START], 1)]
    chat.answer(SnapshotTurn, lambda _: first.pop() if first else answers[later]())

    async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
        text = (await answer.aread()).decode()
    released.set()

    start, mark, error = chunks_in(text)
    assert start == START
    assert mark == {"type": "data-connection", "data": {"resumable": True}, "transient": True}
    assert error["type"] == "error"
    assert words_in_end in error["errorText"]
    assert len(chat.asked) == 2


async def test_at_the_end_of_the_process_every_stream_ends_with_a_word(served: Served, chat: Owner) -> None:
    chat.answer(StartTurn, lambda command: view(command.turn_id))

    async with stream(served.http, "POST", "/api/chat", json=body()) as answer:
        served.server.ask_to_exit()
        async with asyncio.timeout(2):
            text = (await answer.aread()).decode()

    mark, error = chunks_in(text)
    assert (mark["data"], error["type"]) == ({"resumable": True}, "error")
    assert "restarting" in error["errorText"]


async def test_a_slow_client_holds_no_memory_and_misses_nothing(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds: list[turn_streams.TurnFeed] = []
    create = turn_streams.TurnFeed.__init__

    def remember(feed: turn_streams.TurnFeed, *args: Any, **more: Any) -> None:
        create(feed, *args, **more)
        feeds.append(feed)

    monkeypatch.setattr(turn_streams.TurnFeed, "__init__", remember)
    turn_id = new_id()
    chat.answer(SnapshotTurn, snapshot(turn_id, [], 0))
    long = [chunks.text_delta("t1", f"{number:04d}" + "x" * 20_000) for number in range(600)]
    speaker = Speaker(chat.bus, turn_id)
    most_waiting = 0

    async with stream(served.http, "GET", "/api/chat/s1/stream") as answer:
        speaker.say(START, OPEN)
        for chunk in long:
            speaker.say(chunk)
            await asyncio.sleep(0.001)
            most_waiting = max(most_waiting, feeds[0]._waiting_bytes)
        speaker.end(CLOSE, FINISH)
        await chat.bus.flush()
        text = (await answer.aread()).decode()

    assert chunks_in(text) == [START, OPEN, *long, CLOSE, FINISH]
    assert most_waiting < turn_streams.WAITING_BYTES + 4 * 1024 * 1024


async def test_a_client_that_takes_no_byte_at_all_is_given_up(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "WRITE_TIMEOUT_S", 0.2)
    turn_id = new_id()
    chat.answer(SnapshotTurn, snapshot(turn_id, [], 0))
    speaker = Speaker(chat.bus, turn_id)
    before = sse.CUT._value.get()

    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=1024)
    writer.write(b"GET /api/chat/s1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    speaker.say(START, OPEN)
    async with asyncio.timeout(20):
        while sse.CUT._value.get() == before:
            speaker.say(chunks.text_delta("t1", "x" * 100_000))
            await asyncio.sleep(0.01)
    writer.transport.abort()

    assert sse.CUT._value.get() == before + 1
    assert sse.STREAMS.labels("turn")._value.get() == 0
