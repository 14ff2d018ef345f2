"""Text of one message that takes nothing of what follows with it, in whatever shows Markdown.

Two things of Markdown go on until they are ended: a fence, which is closed here, and HTML, which is shown as the text
that it is in the page. Code is left as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

# What a block may stand in: quotes and the items of lists.
_PLACE: Final = re.compile(r"[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$))*")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})(.*)", re.DOTALL)
_RUNS: Final = re.compile("(`+)")
# A tag, also one that goes on in the next line; a comment, a declaration, an instruction. No address in brackets.
_HTML: Final = re.compile(r"<(?=/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>]|$)|[!?])")
# From here on a line is code, unless it goes on with a paragraph or an item of a list.
_CODE_COLUMN: Final = 4


def contained(text: str) -> str:
    """Return `text` with its HTML as text and with its last fence closed."""
    lines = _Lines()
    for line in text.split("\n"):
        lines.take(line)
    return "\n".join(lines.end())


def as_text(line: str) -> str:
    """Return one line whose HTML is text; between backticks it is text already."""
    pieces = _RUNS.split(line)
    runs = Counter(pieces[1::2])
    written: list[str] = []
    closing = ""
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            written.append(piece if closing else _HTML.sub(_escaped, piece))
            continue
        runs[piece] -= 1
        if closing:
            closing = "" if piece == closing else closing
        elif runs[piece] and not _is_escaped(pieces[place - 1], len(pieces[place - 1])):
            closing = piece
        written.append(piece)
    return "".join(written)


def _escaped(found: re.Match[str]) -> str:
    return "<" if _is_escaped(found.string, found.start()) else "\\<"


def _is_escaped(text: str, end: int) -> bool:
    start = end
    while start and text[start - 1] == "\\":
        start -= 1
    return (end - start) % 2 == 1


class _Lines:
    """Lines as they are written, and what the next one begins in."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._items: list[int] = []  # the columns at which the text of the open list items begins
        self._in_quote = False
        self._may_be_code = True  # after a blank line, and after code
        self._fence = ""
        self._indent = ""  # of the open fence, when it stands in nothing that ends it

    def take(self, line: str) -> None:
        """Write the next line."""
        found = _PLACE.match(line)
        assert found is not None
        place = found[0]
        if not line.strip():
            self._may_be_code = True
            if self._in_quote:
                self._in_quote, self._fence = False, ""
                self._items.clear()
        elif not (self._fence and self._goes_on(line)):
            line = self._outside(line, place)
        self._written.append(line)

    def end(self) -> list[str]:
        """Return what was written; a fence in a quote or an item ends by itself."""
        is_open = self._fence and not self._in_quote and not self._items
        return [*self._written, self._indent + self._fence] if is_open else self._written

    def _goes_on(self, line: str) -> bool:
        """Tell whether the line belongs to the open fence, as its end or as code."""
        column = _width(line)
        begins_quote = line.lstrip(" \t").startswith(">")
        if (self._in_quote and not begins_quote) or (self._items and not self._in_quote and column < self._items[-1]):
            self._fence = ""
            return False
        found = _FENCE.fullmatch(line.lstrip(" \t>" if self._in_quote else " \t"))
        indent = 0 if self._in_quote else column - (self._items[-1] if self._items else 0)
        if found and not found[2].strip() and found[1].startswith(self._fence) and indent < _CODE_COLUMN:
            self._fence = ""
            self._may_be_code = True
        return True

    def _outside(self, line: str, place: str) -> str:
        start, column = _width(place), len(place.expandtabs(_CODE_COLUMN))
        if self._in_quote != (">" in place):
            self._items.clear()
            self._in_quote = not self._in_quote
        is_item = bool(place.strip(" \t>"))
        depth = start if is_item and not self._in_quote else column
        while self._items and depth < self._items[-1]:
            self._items.pop()
        indent = column - (self._items[-1] if self._items else 0)
        if not is_item and not self._in_quote and indent >= _CODE_COLUMN and self._may_be_code:
            return line
        if is_item:
            self._items.append(column if place[-1:].isspace() else column + 1)
        self._may_be_code = is_item
        found = _FENCE.fullmatch(line[len(place) :])
        is_block = is_item or self._in_quote or indent < _CODE_COLUMN
        # What follows on the line of ticks may hold none: then it is code within a line.
        if found is None or not is_block or (found[1][0] == "`" and "`" in found[2]):
            return as_text(line)
        self._fence, self._indent = found[1], place
        return line


def _width(text: str) -> int:
    """Return the column at which something stands."""
    return len(text.expandtabs(_CODE_COLUMN)) - len(text.expandtabs(_CODE_COLUMN).lstrip(" "))
