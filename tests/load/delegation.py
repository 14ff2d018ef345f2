"""`make bench NAME=delegation`: what a hop to a specialist costs beside the models, many at once, and memory."""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from dataclasses import dataclass
from typing import Any

import psutil
import uvloop

from libs.agent.tests.company import Company, company
from libs.agent.tests.conftest import Kit
from libs.agent.tests.looking import look
from tests.load.figures import Figures, percentile

NAMES = ("scout", "maker", "judge")


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    hops: int
    supervisors: int
    rounds: int
    turns: int


FULL = Size(hops=400, supervisors=20, rounds=10, turns=500)
QUICK = Size(hops=40, supervisors=20, rounds=1, turns=40)


def supervisor(number: int, delegations: int) -> Company:
    """Return a turn that gives work to so many specialists at once; each looks once and answers 40 words."""
    works: dict[str, Any] = {
        name: [Kit.calls(("look", {"at": name})), Kit.says(f"{name} {number} " * 20)] for name in NAMES
    }
    asked = [(f"agent-{name}", {"prompt": f"Look {number}."}) for name in NAMES[:delegations]]
    first = Kit.calls(*asked) if asked else Kit.calls(("look", {"at": "x"}))
    return company(Kit, first, Kit.says(f"answer {number}"), tools=[look], own_tools=[look], **works)


def lost(made: Company, number: int, delegations: int) -> bool:
    """Tell whether anything of the turn is missing."""
    expected = [f"{name} {number} " * 20 for name in NAMES[:delegations]]
    answered = made.result is not None and made.result.parts[-1].get("text") == f"answer {number}"
    states = [data["state"] for data in made.activity.values()]
    return not answered or made.told != [text.strip() for text in expected] or states != ["completed"] * delegations


async def measure_hops(size: Size, figures: Figures) -> None:
    """Measure turns with a delegation in turns with such that only use a tool; the difference is the hop."""
    took: dict[int, list[float]] = {0: [], 1: []}
    for number in range(size.hops):
        for delegations, times in took.items():
            made = supervisor(number, delegations)
            began = time.perf_counter()
            await made.run()
            times.append((time.perf_counter() - began) * 1_000)
    plain, delegating = (percentile(times, 0.5) for times in took.values())
    figures.add("turn with one tool call, p50", plain, "ms")
    figures.add("hop of a delegation, p50", delegating - plain, "ms", 10)
    figures.add("turn with one delegation, p99", percentile(took[1], 0.99), "ms")


async def measure_many(size: Size, figures: Figures) -> None:
    """Measure supervisors at once, each with three delegations side by side."""
    missing, took = 0, []
    for _ in range(size.rounds):
        turns = [supervisor(number, len(NAMES)) for number in range(size.supervisors)]
        began = time.perf_counter()
        await asyncio.gather(*(made.run() for made in turns))
        took.append((time.perf_counter() - began) * 1_000)
        missing += sum(lost(made, number, len(NAMES)) for number, made in enumerate(turns))
    figures.add(f"{size.supervisors} supervisors at once with 3 delegations each, p50", percentile(took, 0.5), "ms")
    figures.add("turns lost", missing, "", 0)


async def measure_memory(size: Size, figures: Figures) -> None:
    """Measure what is resident after a fifth of the turns and after all of them."""
    process = psutil.Process()
    early = 0.0
    for number in range(size.turns):
        await supervisor(number, len(NAMES)).run()
        if number + 1 == size.turns // 5:
            gc.collect()
            early = process.memory_info().rss / 1e6
    gc.collect()
    grown = process.memory_info().rss / 1e6 - early
    figures.add(f"memory after {size.turns // 5} turns", early, "MB")
    figures.add(f"grown until turn {size.turns}", max(0.0, grown), "MB", 3)


async def measure(size: Size, figures: Figures) -> None:
    """Measure everything in this process: no suite is started, the models answer at once."""
    await measure_hops(size, figures)
    await measure_many(size, figures)
    await measure_memory(size, figures)


def main() -> None:
    """Run it as `make bench NAME=delegation`."""
    parser = argparse.ArgumentParser(prog="delegation")
    parser.add_argument("--quick", action="store_true", help="show that it works; the figures mean little")
    size = QUICK if parser.parse_args().quick else FULL
    figures = Figures("delegation")
    uvloop.run(measure(size, figures))
    figures.write()


if __name__ == "__main__":
    main()
