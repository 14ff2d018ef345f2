"""What popagent takes: seconds to start, memory after 20 turns, work while nobody asks, time to the first real answer.

`--install` also sets popagent up from a fresh clone with an empty HOME and no compiler.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from popagent_kit.settings import clone_root
from popagent_local.model_server import weights
from popagent_testing.model_replies import Reply
from tests.load.figures import Figures
from tests.load.usage import MIB, cpu_seconds, pss_mib
from tests.suite import Suite, SuiteError

TURNS = 20
WARM_STARTS = 3
SETTLE_S = 10.0
IDLE_S = 60.0
ANSWER_TIMEOUT_S = 300.0


def timed_start(suite: Suite) -> float:
    """Launch and return the seconds until `/api/health` answers 200."""
    started = time.perf_counter()
    suite.launch()
    suite.wait(suite.answers, "/api/health answers 200", 120.0)
    seconds = time.perf_counter() - started
    suite.wait(lambda: suite.state.phase == "ready", "the supervisor says ready")
    return seconds


def measure_starts(suite: Suite, figures: Figures) -> None:
    """The first start makes the databases; the next ones find them. Leaves the suite running."""
    suite.model.start()
    figures.add("cold start to health 200", timed_start(suite), "s", 10)
    warm = []
    for _ in range(WARM_STARTS):
        suite.stop_programs()
        warm.append(timed_start(suite))
    figures.add("warm start to health 200, median", sorted(warm)[len(warm) // 2], "s", 5)


async def take_turns(suite: Suite, count: int) -> None:
    """Run turns of 50 words, three sessions in turn."""
    await asyncio.to_thread(suite.model.set_default, Reply(text=" ".join(f"word{number}" for number in range(50))))
    async with suite.talk() as talk:
        for number in range(count):
            answer = await talk.chat(f"Question {number}: what is there?", f"footprint-{number % 3}")
            if answer.status != 200 or answer.ending is None or answer.ending["type"] != "finish":
                raise SuiteError(f"turn {number} was not answered: {answer.status} {answer.body or answer.ending}")


def measure_memory(suite: Suite, figures: Figures) -> None:
    """PSS: what is shared between processes counts once, divided among them."""
    total = 0.0
    for name, processes in suite.processes().items():
        size = pss_mib(processes)
        figures.add(f"PSS, {name} ({len(processes)})", size, "MiB")
        total += size
    figures.add(f"PSS after {TURNS} turns", total, "MiB", 600)


def measure_idle(suite: Suite, seconds: float, figures: Figures) -> None:
    """CPU time of every process over a quiet stretch; ended children are counted at their parents."""
    asked = len(suite.model.requests())
    before, started = cpu_seconds(suite), time.perf_counter()
    time.sleep(seconds)
    after, passed = cpu_seconds(suite), time.perf_counter() - started
    for name, spent in after.items():
        figures.add(f"idle, {name}", 100 * (spent - before.get(name, 0.0)) / passed, "% core")
    figures.add("idle, whole suite", 100 * (sum(after.values()) - sum(before.values())) / passed, "% core", 2)
    figures.add("idle, model requests", len(suite.model.requests()) - asked, "requests", 0)


async def first_answer(suite: Suite) -> str:
    """Ask the embedded model as a person would, again until it has loaded, and return its answer."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    async with suite.talk() as talk:
        while time.monotonic() < deadline:
            answer = await talk.chat("What does this project do? Read the README.")
            if answer.ending is not None and answer.ending["type"] == "finish" and answer.text.strip():
                return answer.text
            await asyncio.sleep(0.5)
    raise SuiteError("the embedded model did not answer")


def measure_embedded(folder: Path, figures: Figures) -> None:
    """From the first `up` of a new home, the weights in the cache, to the end of the real model's first answer."""
    if weights.paths() is None:
        print("no weights in the cache, so no embedded answer is measured: popagent model pull", file=sys.stderr)
        return
    suite = Suite(folder / "first-chat", embedded_model=True)
    suite.home.parent.mkdir()
    try:
        started = time.perf_counter()
        timed_start(suite)
        text = uvloop.run(first_answer(suite))
        figures.add("first embedded answer", time.perf_counter() - started, "s", 60)
        figures.add("PSS, model-server", pss_mib(suite.processes()["model-server"]), "MiB")
        print(f"the embedded model said: {text[:200]!r}")
    finally:
        suite.stop()


def measure_install(folder: Path, figures: Figures) -> None:
    """A fresh clone, an empty HOME and no compiler: what `make setup` installs before it fetches weights."""
    root = clone_root()
    git = shutil.which("git")
    if root is None or git is None or not (root / ".git").exists():
        print("installing is measured from a clone with git", file=sys.stderr)
        return
    clone, home = folder / "clone", folder / "empty-home"
    home.mkdir()
    subprocess.run([git, "clone", "--quiet", str(root), str(clone)], check=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("POPAGENT_", "VIRTUAL_ENV"))}
    env = inherited | {"HOME": str(home), "CC": "false", "CXX": "false"}
    started = time.perf_counter()
    subprocess.run(["make", ".venv/.run"], cwd=clone, env=env, check=True)
    figures.add("install", time.perf_counter() - started, "s")
    files = [file.lstat() for file in (clone / ".venv").rglob("*")]
    figures.add("install, size", sum(each.st_blocks * 512 for each in files) / MIB, "MiB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="five seconds of idling, no real model")
    options.add_argument("--no-model", action="store_true", help="do not start the embedded model")
    options.add_argument("--install", action="store_true", help="measure the installation too; takes minutes")
    given = options.parse_args()
    figures = Figures("footprint")
    with tempfile.TemporaryDirectory(dir=figures.folder) as temporary:
        folder = Path(temporary)
        suite = Suite(folder)
        try:
            measure_starts(suite, figures)
            uvloop.run(take_turns(suite, TURNS))
            measure_memory(suite, figures)
            time.sleep(1.0 if given.quick else SETTLE_S)
            measure_idle(suite, 5.0 if given.quick else IDLE_S, figures)
        finally:
            suite.stop()
        if not (given.quick or given.no_model):
            measure_embedded(folder, figures)
        if given.install:
            measure_install(folder, figures)
    figures.write()


if __name__ == "__main__":
    main()
