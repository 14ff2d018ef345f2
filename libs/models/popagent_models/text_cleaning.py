"""Making a model's text storable: PostgreSQL takes no NUL, UTF-8 takes no half of a surrogate pair."""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def join_pair(match: re.Match[str]) -> str:
    """Return the character that two surrogates stand for."""
    return match[0].encode("utf-16", "surrogatepass").decode("utf-16")


def clean(text: str) -> str:
    """Return `text` with pairs joined, and NUL and lone surrogates replaced."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub(REPLACEMENT, _PAIR.sub(join_pair, text))
    return text


class TextJoiner:
    """Cleans a text that arrives in pieces; a high surrogate waits for the low one in the next piece."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """Return what can be handed on now."""
        if self._half:
            piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def end(self) -> str:
        """Return a replacement character when half a pair was left over."""
        half, self._half = self._half, ""
        return clean(half)
