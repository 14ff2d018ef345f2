"""What a kill -9 left of a sandbox that was just being made: a process that waits for its dead parent for ever."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

_PARENT: Final = re.compile(r"^PPid:\s+(\d+)$", re.MULTILINE)
_NUMBERS: Final = re.compile(r"^NSpid:\s+(.+)$", re.MULTILINE)
_FILTERED: Final = re.compile(r"^Seccomp:\s+[12]$", re.MULTILINE)


def end_orphans(programs: Collection[str]) -> int:
    """End every such process of ours and return how many there were; sandboxes that live or work are left alone.

    It is one of `programs`, in a namespace below this one, without a filter, a child or a parent of its own kind.
    """
    paths = {os.path.realpath(program) for program in programs}
    depth = len(_numbers(_read("self")))
    ended = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        if _program(name) not in paths:
            continue
        with suppress(OSError):  # gone meanwhile
            held = os.pidfd_open(int(name))
            try:
                if _is_orphan(name, paths, depth):
                    signal.pidfd_send_signal(held, signal.SIGKILL)
                    ended += 1
            finally:
                os.close(held)
    return ended


def _is_orphan(name: str, paths: Collection[str], depth: int) -> bool:
    status = _read(name)
    parent = _PARENT.search(status)
    if parent is None or len(_numbers(status)) <= depth or _FILTERED.search(status):
        return False
    children = Path(f"/proc/{name}/task/{name}/children").read_text(encoding="ascii")
    return not children.strip() and _program(parent[1]) not in paths and _program(name) in paths


def _program(name: str) -> str | None:
    try:
        return os.readlink(f"/proc/{name}/exe")
    except OSError:
        return None  # gone, of the kernel, or somebody else's


def _read(name: str) -> str:
    return Path(f"/proc/{name}/status").read_text(encoding="utf-8", errors="replace")


def _numbers(status: str) -> list[str]:
    found = _NUMBERS.search(status)
    return found[1].split() if found else []
