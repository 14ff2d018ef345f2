"""What a change did to a text, short: a unified diff that is bounded in lines, characters and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final

from popagent_telemetry import cut_redacted, without_private_keys

CONTEXT_LINES: Final = 2
# Comparing takes time by the product of both sides; more lines than this are told as numbers.
COMPARED_LINES: Final = 1_500
COMPARED_BYTES: Final = 256_000
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
    old, new = without_private_keys(before), without_private_keys(after)
    start = old.rfind(b"\n", 0, _alike(old, new)) + 1
    tail = _tail(old[start:], new[start:])
    removed, added = (content.count(b"\n", start, len(content) - tail) for content in (old, new))
    if max(len(old), len(new)) - start - tail > COMPARED_BYTES or max(removed, added) > COMPARED_LINES:
        return Diff("", added, removed, cut=True)
    for _ in range(CONTEXT_LINES):
        start = old.rfind(b"\n", 0, max(0, start - 1)) + 1
    end = len(old) - tail
    for _ in range(CONTEXT_LINES):
        end = old.find(b"\n", end) + 1 or len(old)
    tail = len(old) - end
    hunks = list(unified_diff(_lines(old, start, tail), _lines(new, start, tail), n=CONTEXT_LINES, lineterm=""))[2:]
    removed, added = (sum(1 for line in hunks if line.startswith(sign)) for sign in "-+")
    above = old.count(b"\n", 0, start)
    text, cut = _bounded([_moved(line, above) for line in hunks], characters)
    return Diff(text, added, removed, cut)


def _alike(one: bytes, other: bytes) -> int:
    """Return how many bytes the two begin with alike; halves are compared, so that it takes no time by the byte."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tail(old: bytes, new: bytes) -> int:
    """Return how many bytes of whole lines the two end with alike."""
    alike = _alike(old[::-1], new[::-1])
    at = len(old) - alike
    if at == 0 or len(new) == alike:  # what is left of one of them begins where both do: at the start of a line
        return alike
    if old[at - 1 : at] == new[len(new) - alike - 1 : len(new) - alike] == b"\n":
        return alike
    line_end = old.find(b"\n", at)
    return 0 if line_end < 0 else len(old) - line_end - 1


def _lines(content: bytes, start: int, tail: int) -> list[str]:
    """Return the lines as a read shows them; a missing line feed at the end is told as git does."""
    part = content[start : len(content) - tail]
    text = part.decode("utf-8-sig" if start == 0 else "utf-8", "replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]} (no line feed at the end)"]


def _moved(line: str, by: int) -> str:
    """Count the lines of a hunk's head from the beginning of the file."""
    if not line.startswith("@@ "):
        return cut_redacted(line, LONGEST_LINE)
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
