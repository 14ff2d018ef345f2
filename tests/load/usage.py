"""What the processes of a suite use; CPU time is steadier than the clock on a machine that others share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.suite import Suite

MIB = 1024 * 1024


def cpu_seconds(suite: Suite) -> dict[str, float]:
    """Return the CPU seconds of each program so far; children that ended are counted at their parent."""
    found = suite.processes()
    supervisor = found["supervisor"][0].pid

    def spent(process: psutil.Process) -> float:
        times = process.cpu_times()
        # What the supervisor's children used before they were started again is not its own work.
        ended = 0.0 if process.pid == supervisor else times.children_user + times.children_system
        return float(times.user + times.system + ended)

    return {name: sum(read(process, spent) for process in processes) for name, processes in found.items()}


def pss_mib(processes: list[psutil.Process]) -> float:
    """Return the proportional set size: memory that is shared counts once, divided among its holders."""
    return sum(read(process, lambda each: each.memory_full_info().pss) for process in processes) / MIB


def read(process: psutil.Process, figure: Callable[[psutil.Process], float]) -> float:
    """Read a figure of a process, zero when it has ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        return figure(process)
    return 0.0
