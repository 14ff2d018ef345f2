"""Text that a command is given as an argument, or on standard input."""

from __future__ import annotations

import sys
from typing import Final

FROM_STANDARD_INPUT: Final = "-"


def text_of(argument: str) -> str:
    """Return the argument; `-` stands for what is piped in."""
    return piped_text() if argument == FROM_STANDARD_INPUT else argument


def piped_text() -> str:
    """Return the whole of standard input; bytes that are not UTF-8 become replacement characters."""
    return sys.stdin.buffer.read().decode("utf-8", "replace")
