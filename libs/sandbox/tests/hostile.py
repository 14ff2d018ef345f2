"""A workspace to change, what lies outside of it, and somebody who exchanges names while it is changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.reading import read_text

SECRET: Final = "outside-the-workspace"
# Exchanges two names in one step, again and again, until its input is closed; then tells how often.
SWAPPER: Final = """
import ctypes, select, sys
libc, swaps = ctypes.CDLL(None), 0
one, two = (name.encode() for name in sys.argv[1:])
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    swaps += libc.renameat2(-100, one, -100, two, 2) == 0
print(swaps)
"""


def make_workspace(beside: Path) -> Path:
    root = beside / "work" / "repo"
    (root / "src").mkdir(parents=True)
    (root / "README.md").write_text("one\ntwo\nthree\n")
    (root / "src" / "main.py").write_text("print('inside')\n")
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text(SECRET)
    (root / ".env").write_text(SECRET)
    (root / "AGENTS.md").write_text("Be kind.\n")
    (beside / "outside").mkdir()
    (beside / "outside" / "main.py").write_text(SECRET)
    return root


def read(folder: ContainedFolder, path: str, reads: ReadLedger) -> None:
    reads.saw(read_text(folder, path))


def contents(root: Path) -> dict[str, bytes]:
    """Everything below a folder, links as their targets, to see that nothing changed."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = os.readlink(path).encode()
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = b""
    return found


@contextmanager
def swapped(one: Path, two: Path) -> Iterator[None]:
    """Exchange the two while the block runs, a thousand times at least."""
    command = [sys.executable, "-c", SWAPPER, str(one), str(two)]
    attacker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert attacker.stdout is not None
    attacker.stdout.readline()
    swaps = b"0"
    try:
        yield
    finally:
        swaps = attacker.communicate()[0]
    assert int(swaps) > 1_000
