"""Letters and marks that a reader takes for others."""

from __future__ import annotations

import unicodedata
from typing import Final

# Slashes, backslashes and dots of other kinds.
NOT_A_SEPARATOR: Final = frozenset("⁄∕⟋⧸╱〳／∖⟍⧵⧹╲﹨＼․‥﹒．ꓸ𐩐")

# Lower case letters of other alphabets, and the Latin ones that they look like.
_PAIRS: Final = {
    # Cyrillic
    "а": "a", "в": "b", "с": "c", "ԁ": "d", "е": "e", "һ": "h", "і": "i", "ј": "j", "к": "k", "ӏ": "l", "м": "m",
    "о": "o", "р": "p", "ԛ": "q", "ѕ": "s", "т": "t", "ѵ": "v", "ԝ": "w", "х": "x", "у": "y",
    "н": "h",
    # Greek
    "α": "a", "β": "b", "ε": "e", "η": "n", "ι": "i", "κ": "k", "ν": "v", "ο": "o", "ρ": "p", "τ": "t", "υ": "u",
    "χ": "x", "ϲ": "c", "ϳ": "j",
    # Armenian
    "օ": "o", "ս": "u", "հ": "h", "ց": "g", "ո": "n", "ք": "p",
    # Latin that others read as plain letters
    "ı": "i", "ɑ": "a", "ɡ": "g", "ⅼ": "l", "ꞵ": "b",
}  # fmt: skip
# Capitals alone look like these; their small letters do not.
_CAPITALS: Final = {"Β": "B", "Η": "H", "Ζ": "Z", "Μ": "M", "Ν": "N", "Υ": "Y", "Ρ": "P", "В": "B", "Н": "H", "У": "Y"}

_LATIN: Final = frozenset("ıɑɡⅼꞵ")

# Whatever does not belong into a Latin word, in both cases.
CONFUSABLE: Final[dict[str, str]] = {
    letter: plain.upper() if letter != small else plain
    for small, plain in _PAIRS.items()
    if small not in _LATIN
    for letter in (small, small.upper())
    if len(letter) == 1
} | _CAPITALS

_SKELETON: Final = str.maketrans(_PAIRS)


def skeleton(folded: str) -> str:
    """Return the text with each small letter that looks like a Latin one as that letter."""
    return unicodedata.normalize("NFC", folded.translate(_SKELETON))
