"""Streams that are cut at random chunks and joined again: the message must be the stored one, every time.

Half of the cuts are clients that leave; the other half come from kill -9 of a gateway, which cuts all of its streams.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import uvloop

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from popagent_uistream.reducer import Message
from tests.load.figures import Figures, percentile
from tests.suite import Instance, Suite
from tests.talk import Answer, Talk, TurnStream, message_hash

T = TypeVar("T")
CUTS = 1_000
READERS = 12  # of each lane
LIVE_AGE_S = 4
TOKEN_S = 0.01
LEFT_TOKENS = 540  # a chunk each, but for those that came together
FEWEST_CHUNKS = 500
ENOUGH_TOKENS = 100  # to tell of a turn that was left how many chunks it has
KILLED_TOKENS = 1_200  # longer than a gateway takes to come back
LONG_TOKENS = 3_000  # some live ages
KILL_AFTER_S = (0.3, 2.0)
RETRY_S = 0.05
BACK_WITHIN_S = 60.0
UNREACHABLE = (httpx2.TransportError, OSError)


@dataclass
class Tally:
    """What was seen; `wrong` holds a sentence for every message that was not the stored one, and every unfit status."""

    cuts: int = 0
    turns: int = 0
    joined_running: int = 0
    joined_late: int = 0
    interrupted: int = 0
    refused: int = 0
    chunks_a_token: float = 1.0
    back_ms: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Reader:
    """One person at one gateway: asks, is cut, comes back until the turn is over, compares with what is stored."""

    def __init__(self, suite: Suite, talk: Talk, tally: Tally) -> None:
        self.suite = suite
        self.talk = talk
        self.tally = tally

    async def turn(self, tokens: int, leave_at: int | None) -> None:
        """Run one turn; leave after `leave_at` tokens, or wait for somebody else to cut the stream."""
        session, mark = new_id(), f"<{new_id()}>"
        text = mark + " ".join(f"token{number}" for number in range(tokens))
        await asyncio.to_thread(self.suite.model.script, Reply(text=text, token_delay_s=TOKEN_S, when=mark))
        answer = await self._ask(session, f"Please count: {mark}", leave_at)
        if leave_at is not None and leave_at >= ENOUGH_TOKENS:
            self.tally.chunks_a_token = min(self.tally.chunks_a_token, len(answer.chunks) / leave_at)
        while not answer.done or answer.resumable:
            self.tally.interrupted += answer.done
            self.tally.cuts += bool(answer.chunks) and not answer.done
            answer = await self._join(session)
        self.tally.turns += 1
        await self._compare(session, answer, text)

    async def _ask(self, session: str, prompt: str, leave_at: int | None) -> Answer:
        """Ask until the door answers; the same message again is the same turn."""
        message_id = new_id()

        async def ask() -> Answer | None:
            async with self.talk.open_chat(prompt, session, message_id=message_id) as stream:
                if stream.answer.status == 200:
                    return await read(stream, leave_at)
                await say_why(stream, self.tally)
                return None

        return await until_answered(ask)

    async def _join(self, session: str) -> Answer:
        """Join again once the door answers; a turn that is over gives an answer without chunks."""
        cut_at = time.perf_counter()

        async def join() -> Answer | None:
            async with self.talk.open_join(session) as stream:
                if stream.answer.status == 204:
                    self.tally.joined_late += 1
                    stream.answer.done = True
                    return stream.answer
                if stream.answer.status != 200:
                    await say_why(stream, self.tally)
                    return None
                self.tally.joined_running += 1
                self.tally.back_ms.append((time.perf_counter() - cut_at) * 1_000)
                return await read(stream, None)

        return await until_answered(join)

    async def _compare(self, session: str, answer: Answer, text: str) -> None:
        async def stored_message() -> dict[str, Any] | None:
            return (await self.talk.messages(session))[-1]

        stored = await until_answered(stored_message)
        said = "".join(part["text"] for part in stored["parts"] if part["type"] == "text")
        if said != text:
            self.tally.wrong.append(f"{session}: {len(said)} of {len(text)} characters are stored")
        if answer.chunks and message_hash(answer.message) != message_hash(stored):
            self.tally.wrong.append(f"{session}: {difference(answer.message, stored)}")


def difference(streamed: Message, stored: Message) -> str:
    """Say in what the message of a stream differs from the stored one."""
    names = sorted(name for name in streamed.keys() | stored.keys() if streamed.get(name) != stored.get(name))
    shown = "; ".join(f"{name}: {brief(streamed.get(name))} is stored as {brief(stored.get(name))}" for name in names)
    return f"the joined stream's message is not the stored one: {shown}"


def brief(value: object) -> str:
    """Return the beginning and the end of a value."""
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:150]} … {text[-250:]} ({len(text)} characters)"


async def say_why(stream: TurnStream, tally: Tally) -> None:
    """Note with which error the door answered; it is asked again. Only 503 and 504 are plain words for a busy suite."""
    answer = await stream.read()
    tally.refused += 1
    if answer.status not in {503, 504}:
        tally.wrong.append(f"status {answer.status}: {answer.body}")


async def read(stream: TurnStream, leave_at: int | None) -> Answer:
    """Read to the end, to the chunk with the `leave_at`-th token, or until the connection breaks."""
    tokens = 0
    with suppress(*UNREACHABLE):
        async for chunk in stream:
            tokens += chunk.get("delta", "").count(" ")
            if leave_at is not None and tokens >= leave_at:
                break
    return stream.answer


async def until_answered(request: Callable[[], Awaitable[T | None]]) -> T:
    """Repeat a request that nobody answers, as a client does whose server is being restarted."""
    deadline = time.monotonic() + BACK_WITHIN_S
    while time.monotonic() < deadline:
        with suppress(*UNREACHABLE):
            if (answer := await request()) is not None:
                return answer
        await asyncio.sleep(RETRY_S)
    raise TimeoutError(f"the gateway did not answer within {BACK_WITHIN_S:.0f} s")


async def leaving_lane(suite: Suite, cuts: int, readers: int) -> Tally:
    """Clients leave at random chunks and join again at once."""
    tally = Tally()
    planned = iter(range(cuts))
    async with suite.talk() as talk:

        async def person() -> None:
            for number in planned:
                tokens = LEFT_TOKENS if number else LONG_TOKENS
                # The long one is cut when the live stream has forgotten its beginning.
                leave_at = random.randint(1, tokens - 1) if number else tokens - 200
                await Reader(suite, talk, tally).turn(tokens, leave_at)

        await asyncio.gather(*(person() for _ in range(readers)))
    return tally


async def killing_lane(suite: Suite, gateway: Instance, cuts: int, readers: int) -> tuple[Tally, int]:
    """A gateway is killed at random moments and started again; returns how often, too."""
    tally = Tally()
    kills = 0
    async with suite.talk(gateway.base_url) as talk:

        async def person(number: int) -> None:
            tokens = KILLED_TOKENS if number else LONG_TOKENS
            while tally.cuts < cuts:
                await Reader(suite, talk, tally).turn(tokens, None)
                tokens = KILLED_TOKENS

        people = asyncio.gather(*(person(number) for number in range(readers)))
        while not people.done():
            await asyncio.wait([people], timeout=random.uniform(*KILL_AFTER_S))
            if tally.cuts < cuts and not people.done():
                gateway.kill()
                gateway.start()
                kills += 1
                while not await asyncio.to_thread(gateway.ready):
                    await asyncio.sleep(RETRY_S)
        await people
    return tally, kills


async def measure(suite: Suite, cuts: int, readers: int, figures: Figures) -> list[str]:
    """Cut `cuts` streams on a running suite; returns a sentence for every message that was wrong."""
    gateway = suite.another("gateway")
    await suite.until(gateway.ready, "the second gateway is ready")
    started = time.perf_counter()
    left, (killed, kills) = await asyncio.gather(
        leaving_lane(suite, cuts // 2, readers), killing_lane(suite, gateway, cuts - cuts // 2, readers)
    )
    wrong = left.wrong + killed.wrong
    figures.add("wrong messages or answers", len(wrong), "times", 0)
    figures.add("cuts", left.cuts + killed.cuts, "cuts", cuts, "higher")
    figures.add("cuts by a killed gateway", killed.cuts, "cuts", cuts // 2, "higher")
    figures.add("gateway killed", kills, "times")
    figures.add("turns", left.turns + killed.turns, "turns")
    figures.add("chunks of the shortest turn", LEFT_TOKENS * left.chunks_a_token, "chunks", FEWEST_CHUNKS, "higher")
    figures.add("joined while running", left.joined_running + killed.joined_running, "times")
    figures.add("joined after the end", left.joined_late + killed.joined_late, "times")
    figures.add("ended by the door as resumable", left.interrupted + killed.interrupted, "times")
    figures.add("asked again after 503 or 504", left.refused + killed.refused, "times")
    figures.add("stream again after leaving, p95", percentile(left.back_ms, 0.95), "ms")
    figures.add("stream again after a kill, p95", percentile(killed.back_ms, 0.95), "ms")
    figures.add("longest turn, in live ages", LONG_TOKENS * TOKEN_S / LIVE_AGE_S, "ages", 1, "higher")
    figures.add("whole run", time.perf_counter() - started, "s")
    return wrong


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cuts", type=int, default=CUTS, help=f"how many cuts (default {CUTS})")
    options.add_argument("--readers", type=int, default=READERS, help="streams at once at each of the two gateways")
    options.add_argument("--quick", action="store_true", help="forty cuts")
    options.add_argument("--seed", type=int, default=None, help="of the random moments")
    given = options.parse_args()
    random.seed(given.seed)
    figures = Figures("resume")
    with (
        tempfile.TemporaryDirectory(dir=figures.folder) as folder,
        Suite(Path(folder), env={"POPAGENT_LIVE_AGE_S": str(LIVE_AGE_S)}) as suite,
    ):
        wrong = uvloop.run(measure(suite, 40 if given.quick else given.cuts, given.readers, figures))
        if wrong:
            logs = figures.folder / "resume-logs"
            shutil.copytree(suite.home / "logs", logs, dirs_exist_ok=True)
            wrong.append(f"the logs are kept in {logs}")
    figures.write()
    if wrong:
        sys.exit("\n".join([*wrong[:10], *wrong[10:][-1:]]))


if __name__ == "__main__":
    main()
