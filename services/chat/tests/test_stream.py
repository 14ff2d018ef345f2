"""The stream of a turn: what goes out at once, what is kept, and when it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from popagent_bus.live import END, Frame, LivePublisher, LiveReader
from popagent_chat.turns import stream as streams
from popagent_chat.turns.stream import TurnStream
from popagent_kit.ids import new_id
from popagent_testing.suite_bus import ConnectAs, until
from popagent_uistream import chunks
from popagent_uistream.parse import parse
from services.chat.tests.running import live_subject


class Kept:
    """A place for checkpoints; it fails while `away`, and waits while `held`."""

    def __init__(self) -> None:
        self.saved: list[tuple[dict[str, object], int]] = []
        self.away = False
        self.held = asyncio.Event()
        self.held.set()

    async def __call__(self, message: orjson.Fragment, next_chunk: int) -> None:
        await self.held.wait()
        if self.away:
            raise ConnectionError("the database is away")
        self.saved.append((orjson.loads(orjson.dumps(message)), next_chunk))


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
async def publisher(connect_as: ConnectAs) -> LivePublisher:
    return LivePublisher(await connect_as("chat"), live_subject(new_id()), coalesce_s=0.008)


@pytest.fixture
async def reader(publisher: LivePublisher, connect_as: ConnectAs) -> AsyncIterator[LiveReader]:
    bus = await connect_as("gateway")
    async with LiveReader(bus, publisher.subject, replay=False) as opened:
        await bus.flush()
        yield opened


@pytest.fixture
async def stream(publisher: LivePublisher, kept: Kept) -> AsyncIterator[TurnStream]:
    made = TurnStream(publisher, kept, opening=chunks.start(message_id="m", message_metadata={"turnId": "t"}))
    yield made
    made.close()


async def begin(stream: TurnStream, *texts: str) -> None:
    await stream.emit(chunks.start(message_id="the loop's own"))
    await stream.emit(chunks.start_step())
    await stream.emit(chunks.text_start("1"))
    for text in texts:
        await stream.emit(chunks.text_delta("1", text))


async def test_the_first_text_takes_the_chunks_before_it_along_in_one_frame(
    stream: TurnStream, reader: LiveReader
) -> None:
    await begin(stream, "hello")

    frame = await reader.next(5)

    assert frame is not None
    assert [chunk["type"] for chunk in parse(frame.data)] == ["start", "start-step", "text-start", "text-delta"]
    assert parse(frame.data)[0] == {"type": "start", "messageId": "m", "messageMetadata": {"turnId": "t"}}


async def test_what_says_nothing_yet_goes_out_when_nothing_follows(stream: TurnStream, reader: LiveReader) -> None:
    stream.describe({"model": "a model"})
    stream.open()

    frame = await reader.next(5)

    assert frame is not None
    assert parse(frame.data)[0]["messageMetadata"] == {"turnId": "t", "model": "a model"}


async def test_the_ending_is_held_back_until_the_end_is_stored(stream: TurnStream, reader: LiveReader) -> None:
    await begin(stream, "hello")
    for chunk in (chunks.text_end("1"), chunks.finish_step(), chunks.finish(finish_reason="stop")):
        await stream.emit(chunk)
    stream.note({"state": "completed"})
    await stream.settle()
    first = await reader.next(5)
    assert await reader.next(0.3) is None

    stream.finish()

    last = await reader.next(5)
    assert first is not None
    assert last is not None
    assert (last.first, last.flag) == (first.next, END)
    assert [chunk["type"] for chunk in parse(last.data)] == ["text-end", "finish-step", "message-metadata", "finish"]
    assert last.next == stream.next_chunk + 1


async def test_a_fragment_of_any_length_travels_in_pieces(stream: TurnStream, reader: LiveReader) -> None:
    text = "\x01" * 300_000 + "🦩" * 100_000
    await begin(stream, text)
    await stream.settle()

    frames: list[Frame] = []
    while sum(frame.count for frame in frames) < stream.next_chunk:
        frame = await reader.next(5)
        assert frame is not None
        frames.append(frame)

    assert max(len(frame.data) for frame in frames) < 1_000_000
    deltas = [chunk["delta"] for frame in frames for chunk in parse(frame.data) if chunk["type"] == "text-delta"]
    assert "".join(deltas) == text == stream.message["parts"][1]["text"]


async def test_a_checkpoint_comes_after_64_kilobytes_and_one_at_a_time(stream: TurnStream, kept: Kept) -> None:
    kept.held.clear()
    await begin(stream, "x" * 70_000)
    saved_at = stream.next_chunk
    await stream.emit(chunks.text_delta("1", "y" * 70_000))
    await asyncio.sleep(0)
    kept.held.set()

    await until(lambda: len(kept.saved) == 2)

    (first, first_next), (second, second_next) = kept.saved
    assert (first_next, second_next) == (saved_at, stream.next_chunk)
    assert len(str(second)) - len(str(first)) == 70_000


async def test_every_checkpoint_covers_exactly_the_chunks_it_counts(
    stream: TurnStream, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "CHECKPOINT_S", 0.01)
    await begin(stream)
    for number in range(40):
        await stream.emit(chunks.text_delta("1", f"w{number} "))
        if number % 3 == 0:
            await asyncio.sleep(0.004)
    await stream.emit(chunks.text_end("1"))
    await until(lambda: bool(kept.saved) and kept.saved[-1][1] == stream.next_chunk)

    for message, next_chunk in kept.saved:
        texts = [part["text"] for part in message["parts"] if part["type"] == "text"]  # type: ignore[attr-defined]
        words = min(max(0, next_chunk - 3), 40)
        assert texts == (["".join(f"w{number} " for number in range(words))] if next_chunk >= 3 else [])


async def test_a_failed_checkpoint_is_made_up_for_and_none_begins_after_the_end(
    stream: TurnStream, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "CHECKPOINT_S", 0.02)
    kept.away = True
    await begin(stream, "one")
    await asyncio.sleep(0.1)
    assert kept.saved == []
    kept.away = False
    await until(lambda: bool(kept.saved))
    await stream.settle()
    await stream.emit(chunks.text_delta("1", "three"))
    count = len(kept.saved)
    await asyncio.sleep(0.1)

    assert len(kept.saved) == count


async def test_frames_are_forgotten_only_some_time_behind_a_checkpoint(
    stream: TurnStream, publisher: LivePublisher, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "CHECKPOINT_S", 0.02)
    monkeypatch.setattr(streams, "FORGET_AFTER_S", 0.2)
    forgotten: list[int] = []
    monkeypatch.setattr(publisher, "forget_before", forgotten.append)
    await begin(stream, "one")
    await until(lambda: len(kept.saved) == 1)
    assert forgotten == []

    await asyncio.sleep(0.25)
    await stream.emit(chunks.text_delta("1", "two"))
    await until(lambda: bool(forgotten))

    assert forgotten == [kept.saved[0][1]]
