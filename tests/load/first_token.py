"""What the suite adds to the time to first token, and how many turns it carries; the model is scripted and instant."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from popagent_uistream.parse import StreamParser
from tests.load.figures import Figures, percentile
from tests.load.lean import Heard, LeanClient
from tests.load.usage import cpu_seconds
from tests.suite import Suite

TOKENS = 50
TEXT = " ".join(f"word{number}" for number in range(TOKENS))
OPEN_LOOP_PER_S = 30
CALLERS = 20
STREAMS = 200
STREAM_TOKENS = 200
STREAM_TOKEN_S = 0.005
STREAM_TEXT = " ".join(f"slow{number}" for number in range(STREAM_TOKENS))


@dataclass(frozen=True)
class Counts:
    """How much is measured."""

    alone: int = 300
    open_loop_s: float = 20.0
    closed_loop: int = 3_000
    streams: int = STREAMS
    warm_up: int = 40


QUICK = Counts(alone=20, open_loop_s=2.0, closed_loop=100, streams=20, warm_up=5)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def flaw_of(heard: Heard, expected: str) -> str | None:
    """Say what differs from the model's answer, or None."""
    if heard.status != 200:
        return f"status {heard.status}: {heard.body[:200].decode(errors='replace')}"
    parser = StreamParser()
    chunks = parser.feed(bytes(heard.body))
    text = "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
    if parser.done and chunks[-1]["type"] == "finish" and digest(text) == digest(expected):
        return None
    return f"{len(chunks)} chunks, {len(text)} characters, the last chunk {chunks[-1] if chunks else None}"


class Turns:
    """Starts turns through the door, and asks the model without it; holds every answer to the model's words."""

    def __init__(self, suite: Suite) -> None:
        self.door = LeanClient(suite.base_url, suite.key)
        self.model = LeanClient(suite.model.url)
        self.lost: list[str] = []

    async def turn(self, expected: str = TEXT) -> Heard | None:
        """Run one turn in a session of its own; None when its answer was not the model's, the reason is in `lost`."""
        message = {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": "Count to fifty."}]}
        try:
            heard = await self.door.post("/api/chat", {"id": new_id(), "message": message}, b'"text-delta"')
        except (OSError, TimeoutError) as error:
            self.lost.append(repr(error))
            return None
        flaw = flaw_of(heard, expected)
        if flaw is None:
            return heard
        self.lost.append(flaw)
        return None

    async def direct(self) -> Heard:
        """Ask the model itself for the same answer."""
        content = {
            "model": "scripted-model",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "Count to fifty."}],
        }
        return await self.model.post("/v1/chat/completions", content, b'"content":"word')

    def close(self) -> None:
        self.door.close()
        self.model.close()


def added(figures: Figures, name: str, through_ms: list[float], direct_ms: float, bars: tuple[float, float]) -> None:
    """Add the percentiles of the suite less the median of the model alone; nothing when every turn was lost."""
    if not through_ms:
        return
    figures.add(f"added first token, {name}, p50", percentile(through_ms, 0.5) - direct_ms, "ms", bars[0])
    figures.add(f"added first token, {name}, p95", percentile(through_ms, 0.95) - direct_ms, "ms", bars[1])


async def measure_alone(turns: Turns, count: int, figures: Figures) -> float:
    """One turn at a time, each followed by the model alone; returns the model's median in ms."""
    through, direct = [], []
    for _ in range(count):
        through.append(await turns.turn())
        direct.append((await turns.direct()).first_token_ms)
    median = statistics.median(direct)
    figures.add("model alone, first token p50", median, "ms")
    added(figures, "one at a time", [heard.first_token_ms for heard in through if heard], median, (8, 15))
    return median


async def measure_open_loop(turns: Turns, seconds: float, direct_ms: float, figures: Figures) -> None:
    """Thirty turns a second, whether or not the earlier ones are over; each is timed from when it was due."""
    started = time.perf_counter() + 0.1

    async def due(at: float) -> float | None:
        await asyncio.sleep(at - time.perf_counter())
        heard = await turns.turn()
        return (heard.marked_at - at) * 1_000 if heard else None

    moments = [started + number / OPEN_LOOP_PER_S for number in range(round(seconds * OPEN_LOOP_PER_S))]
    through = await asyncio.gather(*(due(at) for at in moments))
    added(figures, "30 turns/s", [wait_ms for wait_ms in through if wait_ms is not None], direct_ms, (15, 40))


async def measure_closed_loop(turns: Turns, suite: Suite, count: int, figures: Figures) -> None:
    """Twenty callers, each starting its next turn when the last one ended; CPU time by program beside it."""
    waits_ms: list[float] = []

    async def caller() -> None:
        mine = [await turns.turn() for _ in range(count // CALLERS)]
        waits_ms.extend(heard.first_token_ms for heard in mine if heard)

    before, started = cpu_seconds(suite), time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    figures.add("closed loop of 20", len(waits_ms) / (time.perf_counter() - started), "turns/s", 100, "higher")
    for name, spent in cpu_seconds(suite).items():
        figures.add(f"CPU of a turn, {name}", 1_000 * (spent - before.get(name, 0.0)) / count, "ms")
    if waits_ms:
        figures.add("closed loop of 20, first token p50", percentile(waits_ms, 0.5), "ms")


async def measure_streams(turns: Turns, suite: Suite, count: int, figures: Figures) -> None:
    """Many streams at once on one gateway, each token 5 ms after the last; saturation is expected, loss is not."""
    suite.model.set_default(Reply(text=STREAM_TEXT, token_delay_s=STREAM_TOKEN_S))
    await turns.door.warm(count)
    started = time.perf_counter()
    answers = await asyncio.gather(*(turns.turn(STREAM_TEXT) for _ in range(count)))
    seconds = time.perf_counter() - started
    figures.add(f"{count} streams at once, all ended after", seconds, "s")
    figures.add(f"{count} streams at once", count * STREAM_TOKENS / seconds, "tokens/s", None, "higher")
    if first_ms := [heard.first_token_ms for heard in answers if heard]:
        figures.add(f"{count} streams at once, first token p95", percentile(first_ms, 0.95), "ms")


async def measure(suite: Suite, counts: Counts, figures: Figures) -> list[str]:
    """Measure everything on a running suite; returns why turns were lost, one reason for each."""
    suite.model.set_default(Reply(text=TEXT))
    turns = Turns(suite)
    try:
        await turns.door.warm(CALLERS)
        for _ in range(counts.warm_up):
            await turns.turn()
            await turns.direct()
        if not turns.lost:
            direct_ms = await measure_alone(turns, counts.alone, figures)
            await measure_open_loop(turns, counts.open_loop_s, direct_ms, figures)
            await measure_closed_loop(turns, suite, counts.closed_loop, figures)
            await measure_streams(turns, suite, counts.streams, figures)
    finally:
        turns.close()
    figures.add("turns lost", len(turns.lost), "turns", 0)
    return turns.lost


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few turns each: proves that it works, measures little")
    given = options.parse_args()
    figures = Figures("first-token")
    with tempfile.TemporaryDirectory(dir=figures.folder) as folder, Suite(Path(folder)) as suite:
        lost = uvloop.run(measure(suite, QUICK if given.quick else Counts(), figures))
    figures.write()
    if lost:
        sys.exit("\n".join(["lost:", *lost[:5]]))


if __name__ == "__main__":
    main()
