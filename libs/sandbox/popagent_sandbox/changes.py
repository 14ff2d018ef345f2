"""What a change did to a text, short: a unified diff that is bounded in lines, characters and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import takewhile
from typing import Final

from popagent_kit.text import excerpt
from popagent_telemetry import without_private_keys

CONTEXT_LINES: Final = 2
# Comparing takes time by the product of both sides; more lines than this are told as numbers.
COMPARED_LINES: Final = 1_500
LONGEST_LINE: Final = 240


@dataclass(frozen=True)
class Diff:
    """`text` holds the hunks, without file names; it is empty where too much changed to compare it."""

    text: str
    added: int
    removed: int
    cut: bool


def diff(before: bytes, after: bytes, *, characters: int = 4_000) -> Diff:
    """Compare two contents of a text file; private keys are redacted, since single lines of them look like text."""
    old, new = _lines(before), _lines(after)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = max(0, same - CONTEXT_LINES)
    tail_old, tail_new = old[same:], new[same:]
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(tail_old[::-1], tail_new[::-1], strict=False)))
    kept = max(0, end - CONTEXT_LINES)
    middle_old, middle_new = old[start : len(old) - kept], new[start : len(new) - kept]
    if len(middle_old) > COMPARED_LINES or len(middle_new) > COMPARED_LINES:
        return Diff("", len(tail_new) - end, len(tail_old) - end, cut=True)
    hunks = list(unified_diff(middle_old, middle_new, n=CONTEXT_LINES, lineterm=""))[2:]
    added = sum(1 for line in hunks if line.startswith("+"))
    removed = sum(1 for line in hunks if line.startswith("-"))
    text, cut = _bounded([_moved(line, start) for line in hunks], characters)
    return Diff(text, added, removed, cut)


def _lines(content: bytes) -> list[str]:
    """Return the lines as a read shows them; a missing line feed at the end is told as git does."""
    text = without_private_keys(content).decode("utf-8-sig", "replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]} (no line feed at the end)"]


def _moved(line: str, by: int) -> str:
    """Count the lines of a hunk's head from the beginning of the file."""
    if not line.startswith("@@ "):
        return excerpt(line, LONGEST_LINE)
    _, old, new, _ = line.split(" ")
    return f"@@ -{_counted(old[1:], by)} +{_counted(new[1:], by)} @@"


def _counted(place: str, by: int) -> str:
    line, comma, length = place.partition(",")
    return f"{int(line) + by}{comma}{length}"


def _bounded(lines: Sequence[str], characters: int) -> tuple[str, bool]:
    used = 0
    for number, line in enumerate(lines):
        used += len(line) + 1
        if used > characters:
            return "\n".join(lines[:number]), True
    return "\n".join(lines), False
