"""Contained files and confined commands: reading, changing, a search beside `git grep`, a command beside a bare one.

No suite, no database.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.reading import read_text
from popagent_sandbox.searching import grep
from popagent_sandbox.writing import edit_text, write_text
from tests.load.figures import Figures, percentile

FILE_BYTES = 10_000
READ = "src/package/module.py"
# In no file, and in one of ten: what a search costs depends on how much it finds.
PATTERNS = {"nothing": "no_such_name", "some": r"def function_\d*7_0\("}


@dataclass(frozen=True)
class Size:
    """How much is measured; `folders` hold fifty files each."""

    reads: int
    changes: int
    folders: int
    searches: int
    commands: int


FULL = Size(reads=5_000, changes=300, folders=100, searches=15, commands=200)
QUICK = Size(reads=200, changes=20, folders=4, searches=3, commands=10)


def make_checkout(root: Path, folders: int) -> int:
    """Write a checkout of a few kilobytes a file, known to Git; returns the number of its files."""
    for number in range(folders):
        folder = root / f"area_{number // 10}" / f"package_{number}"
        folder.mkdir(parents=True)
        for file in range(50):
            name = number * 50 + file
            body = (f"def function_{name}_{line}(value):\n    return value + {line}\n\n\n" for line in range(40))
            (folder / f"module_{file}.py").write_text("".join(body))
    (root / READ).parent.mkdir(parents=True)
    (root / READ).write_text(("x" * 79 + "\n") * (FILE_BYTES // 80))
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    return folders * 50 + 1


def git(root: Path, *arguments: str) -> float:
    """Run Git without anybody's configuration; returns how long it took, in milliseconds."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    began = time.perf_counter()
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, check=False)
    took = (time.perf_counter() - began) * 1_000
    if done.returncode not in (0, 1):  # 1 is how `git grep` says that nothing matches
        raise RuntimeError(done.stderr.decode())
    return took


def timed(times: int, act: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each of so many calls, after one that is not counted."""
    act()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        took.append((time.perf_counter() - began) * 1_000)
    return took


def measure_files(folder: ContainedFolder, size: Size, figures: Figures) -> None:
    """Measure one file: read, edited, written anew. A change waits twice for the disk, so its figure is the disk's."""
    reads = ReadLedger()
    took = timed(size.reads, lambda: reads.saw(read_text(folder, READ)))
    figures.add("contained read of 10 kB, p50", percentile(took, 0.5), "ms", 1)
    figures.add("contained read of 10 kB, p99", percentile(took, 0.99), "ms")
    write_text(folder, "count.txt", "0\n", reads)
    numbers = iter(range(size.changes + 1))

    def edit() -> None:
        number = next(numbers)
        edit_text(folder, "count.txt", f"{number}\n", f"{number + 1}\n", reads)

    figures.add("edit of a small file, p50", percentile(timed(size.changes, edit), 0.5), "ms")


def measure_search(folder: ContainedFolder, root: Path, files: int, size: Size, figures: Figures) -> None:
    """Search for the same in turns, so that a busy moment of the machine meets both."""
    for found, pattern in PATTERNS.items():
        ours, gits = [], []
        searched = 0
        for _ in range(size.searches):
            gits.append(git(root, "grep", "-n", "-E", pattern.replace(r"\d", "[0-9]")))
            began = time.perf_counter()
            result = grep(folder, pattern, limit=1_000_000, limit_per_file=1_000_000, time_s=60)
            ours.append((time.perf_counter() - began) * 1_000)
            searched = result.files
        if searched < files:
            raise RuntimeError(f"searched {searched} of {files} files")
        name = f"grep over {files - 1} files that finds {found}"
        figures.add(f"{name}, p50", percentile(ours, 0.5), "ms")
        figures.add(f"git grep, the same, {found}, p50", percentile(gits, 0.5), "ms")
        figures.add(f"ratio to git grep, {found}", percentile(ours, 0.5) / percentile(gits, 0.5), "times")


async def measure_commands(folder: ContainedFolder, size: Size, figures: Figures) -> None:
    """Run nothing in bash, confined and bare, in turns; the confined one looks for credentials first."""
    commands = Commands(folder)
    await commands.run(":")
    confined, bare = [], []
    for _ in range(size.commands):
        began = time.perf_counter()
        ran = await commands.run(":")
        confined.append((time.perf_counter() - began) * 1_000)
        if ran.ended.status != 0:
            raise RuntimeError(ran.printed.head)
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec("bash", "-c", ":", stdout=subprocess.PIPE)
        await process.communicate()
        bare.append((time.perf_counter() - began) * 1_000)
    over = [ours - plain for ours, plain in zip(confined, bare, strict=True)]
    figures.add("a confined command, p50", percentile(confined, 0.5), "ms")
    figures.add("bubblewrap overhead, p50", percentile(over, 0.5), "ms", 15)
    figures.add("bubblewrap overhead, p95", percentile(over, 0.95), "ms")


def measure(size: Size, figures: Figures) -> None:
    """Measure everything in a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=figures.folder) as name:
        root = Path(name)
        files = make_checkout(root, size.folders)
        with ContainedFolder(root) as folder:
            measure_search(folder, root, files, size, figures)
            measure_files(folder, size, figures)
        (root / "small").mkdir()
        with ContainedFolder(root / "small") as folder:
            uvloop.run(measure_commands(folder, size, figures))


def main() -> None:
    """Run it as `make bench NAME=sandbox`."""
    parser = argparse.ArgumentParser(prog="sandbox")
    parser.add_argument("--quick", action="store_true", help="show that it works; the figures mean little")
    size = QUICK if parser.parse_args().quick else FULL
    figures = Figures("sandbox")
    measure(size, figures)
    figures.write()


if __name__ == "__main__":
    main()
