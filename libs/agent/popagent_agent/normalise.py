"""Text as a model should read it: what a person cannot see in it may be an order to the model, or noise."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Control characters but for tab, line feed, form feed and carriage return, and the tag characters, which spell ASCII
# without a glyph. What scripts and emoji need to be drawn stays.
_CHARACTERS: Final = "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\U000e0000-\U000e007f]"
# Whole sequences that colour a terminal, move its cursor or set its title.
_SEQUENCES: Final = "\x1b\\[[0-9;:?]{0,64}[ -/]{0,8}[@-~]|\x1b\\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\\\)"
_ANY: Final = re.compile(_CHARACTERS)
_UNSEEN: Final = re.compile(f"{_SEQUENCES}|{_CHARACTERS}")


def normalised(text: str) -> str:
    """Return `text` without what has no glyph and no meaning as text."""
    return text if _ANY.search(text) is None else _UNSEEN.sub("", text)


# They count as letters and symbols, and show nothing: fillers of Hangul and the empty pattern of Braille.
_EMPTY: Final = "\u115f\u1160\u2800\u3164\uffa0"


def says_something(text: str) -> bool:
    """Tell whether a person would see anything of `text`: blanks, controls and marks without a letter are nothing."""
    return any(unicodedata.category(char)[0] not in "CMZ" and char not in _EMPTY for char in text)
