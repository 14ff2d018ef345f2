"""Exact replacement in the bytes of a text file; line endings stay what they are."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import Final

from popagent_sandbox.errors import TextNotFoundError
from popagent_telemetry import cut_redacted

MOST_NAMED_LINES: Final = 8
MOST_PLACES: Final = 100_000
# Lines looked at for the nearest text, and those of them that are compared letter by letter.
SEARCHED_LINES: Final = 20_000
COMPARED_LINES: Final = 24
SHOWN_LINES: Final = 6
SHOWN_LINE: Final = 160
_ALIKE: Final = 0.5


def edited(content: bytes, old: str, new: str, *, everywhere: bool = False) -> bytes:
    """Return `content` with `old` replaced; a line feed in `old` matches CRLF too, and becomes what the lines have.

    Raises:
        TextNotFoundError: `old` is empty, does not occur, or occurs more than once and not `everywhere` is meant.
    """
    wanted = old.replace("\r\n", "\n").encode()
    if not wanted:
        raise TextNotFoundError("The text to replace is empty. Give the lines that are to be changed.")
    text = _Text(content)
    found = text.find_all(wanted)
    if not found:
        raise TextNotFoundError(_nowhere(text, wanted))
    if not everywhere:
        again = text.plain.find(wanted, found[0] + 1)
        if again >= 0:  # also one that overlaps the first: the text does not say which is meant
            raise TextNotFoundError(_too_often(text, found if len(found) > 1 else [found[0], again]))
    added = new.replace("\r\n", "\n").encode()
    pieces: list[bytes] = []
    done = 0
    for start in found:
        first, last = text.original(start), text.original(start + len(wanted))
        pieces += [content[done:first], text.with_endings(added, content[first:last])]
        done = last
    return b"".join([*pieces, content[done:]])


class _Text:
    """The content with CRLF as line feeds, and the way back to the bytes as they are."""

    def __init__(self, content: bytes) -> None:
        self.plain = content.replace(b"\r\n", b"\n")
        self._removed: list[int] = []  # where, in `plain`, a line feed had a carriage return before it
        at = content.find(b"\r\n")
        while at >= 0:
            self._removed.append(at - len(self._removed))
            at = content.find(b"\r\n", at + 2)
        self._crlf = 2 * len(self._removed) > content.count(b"\n")

    def find_all(self, wanted: bytes) -> list[int]:
        """Return every place, none of which overlaps another: so it takes linear time whatever the text."""
        places: list[int] = []
        at = self.plain.find(wanted)
        while at >= 0:
            places.append(at)
            if len(places) > MOST_PLACES:
                raise TextNotFoundError(f"This text occurs more than {MOST_PLACES} times. Nothing was changed.")
            at = self.plain.find(wanted, at + len(wanted))
        return places

    def original(self, at: int) -> int:
        return at + bisect_left(self._removed, at)

    def with_endings(self, added: bytes, before: bytes) -> bytes:
        """Give the new lines the endings of those they replace, else of the file."""
        crlf = b"\r\n" in before if b"\n" in before else self._crlf
        return added.replace(b"\n", b"\r\n") if crlf else added

    def line_of(self, at: int) -> int:
        return self.plain.count(b"\n", 0, at) + 1


def _too_often(text: _Text, found: list[int]) -> str:
    lines = ", ".join(str(text.line_of(at)) for at in found[:MOST_NAMED_LINES])
    more = " and more" if len(found) > MOST_NAMED_LINES else ""
    return (
        f"This text occurs {len(found)} times, at lines {lines}{more}. Give more of the lines around the one you mean, "
        "or replace_all=true for every one. Nothing was changed."
    )


def _nowhere(text: _Text, wanted: bytes) -> str:
    lines = text.plain.decode("utf-8", "replace").split("\n", SEARCHED_LINES)[:SEARCHED_LINES]
    asked = wanted.decode("utf-8", "replace").strip("\n").split("\n")
    spaced = _other_white_space(lines, asked)
    start = spaced if spaced is not None else _nearest(lines, asked)
    if start is None:
        return "This text does not occur in the file, nor anything like it. Read the file again. Nothing was changed."
    end = min(len(lines), start + min(len(asked), SHOWN_LINES))
    shown = "\n".join(cut_redacted(line, SHOWN_LINE) for line in lines[start:end])
    why = "It is there with other white space" if spaced is not None else "The nearest is"
    return f"This text does not occur in the file. {why}, at line {start + 1}:\n{shown}\nNothing was changed."


def _other_white_space(lines: list[str], asked: list[str]) -> int | None:
    pattern = ["".join(line.split()) for line in asked]
    if not any(pattern):
        return None
    squeezed = ["".join(line.split()) for line in lines]
    for at in range(len(squeezed) - len(pattern) + 1):
        if squeezed[at] == pattern[0] and squeezed[at : at + len(pattern)] == pattern:
            return at
    return None


def _nearest(lines: list[str], asked: list[str]) -> int | None:
    """Return the line at which something like the text begins; the longest line asked for decides."""
    key = max(range(len(asked)), key=lambda at: len(asked[at].strip()))
    probe = asked[key].strip()[:SHOWN_LINE]
    words = Counter(_words(probe))
    shared = Counter({at: sum((Counter(_words(line[:SHOWN_LINE])) & words).values()) for at, line in enumerate(lines)})
    best: tuple[float, int] = (_ALIKE, -1)
    for at, count in shared.most_common(COMPARED_LINES):
        if count:
            alike = SequenceMatcher(None, probe, lines[at].strip()[:SHOWN_LINE], autojunk=False).ratio()
            best = max(best, (alike, at))
    return None if best[1] < 0 else max(0, best[1] - key)


def _words(line: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in line.casefold()).split()
