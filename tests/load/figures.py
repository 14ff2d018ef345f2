"""What every benchmark prints and writes: figures against their bars, and the noise of the machine they ran on."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from popagent_kit.settings import home_folder

Better = Literal["lower", "higher"]
FSYNC_PROBE_S = 0.5


@dataclass(frozen=True)
class Figure:
    """One measured value; `bar` is what DESIGN asks for, None where it asks for nothing."""

    value: float
    unit: str
    bar: float | None
    better: Better

    @property
    def holds(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value <= self.bar if self.better == "lower" else self.value >= self.bar


def fsyncs_per_s(folder: Path) -> float:
    """Measure how often the disk takes 8 kB for good; the neighbours of this machine make it swing tenfold."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < FSYNC_PROBE_S:
            os.pwrite(file.fileno(), b"x" * 8192, 0)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - started)


def percentile(values: list[float], share: float) -> float:
    """Return the nearest-rank percentile, `share` between 0 and 1."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


class Figures:
    """The result of one benchmark, `make bench NAME=<name>`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = home_folder() / "bench"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.figures: dict[str, Figure] = {}
        self.noise: dict[str, Any] = {"cores": os.cpu_count(), **self._gauge("before")}

    def add(self, name: str, value: float, unit: str, bar: float | None = None, better: Better = "lower") -> None:
        """Add a figure; a second one of the same name replaces it."""
        self.figures[name] = Figure(round(value, 3), unit, bar, better)

    def write(self) -> Path:
        """Print the table and write `<home>/bench/<name>.json`; returns the file."""
        self.noise |= self._gauge("after")
        width = max(map(len, self.figures), default=0)
        for name, figure in self.figures.items():
            sign = {True: "holds", False: "MISSED", None: ""}[figure.holds]
            limit = "" if figure.bar is None else f"{'≤' if figure.better == 'lower' else '≥'} {figure.bar:g}"
            print(f"{name:<{width}}  {figure.value:>12,.2f} {figure.unit:<8} {limit:>10}  {sign}")
        noise = ", ".join(f"{key} {value}" for key, value in self.noise.items())
        print(f"noise: {noise}")
        file = self.folder / f"{self.name}.json"
        content = {"figures": {name: asdict(figure) for name, figure in self.figures.items()}, "noise": self.noise}
        file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
        return file

    def _gauge(self, moment: str) -> dict[str, float]:
        return {
            f"load_{moment}": round(os.getloadavg()[0], 2),
            f"fsyncs_per_s_{moment}": round(fsyncs_per_s(self.folder)),
        }
