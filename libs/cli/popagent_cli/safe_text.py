"""Text of models, files and strangers made safe for a terminal: no control characters, no escape sequences."""

from __future__ import annotations

import re
from typing import Final

from popagent_kit.text import one_line

# ESC and the 8-bit openers begin sequences; what is inside them is dropped with them.
_CSI_END: Final = re.compile(r"[@-~]")
_STRING_OPENERS: Final = frozenset("PX]^_")  # DCS, SOS, OSC, PM, APC: end with BEL, ST or ESC \
_C1_STRINGS: Final = frozenset("\x90\x98\x9d\x9e\x9f")
# Marks that turn the direction of writing can make text read as something else.
_INVISIBLE: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\x7f")
_LONGEST_SEQUENCE: Final = 4_096
_NEEDS_WORK: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class SafeText:
    """Takes text in any pieces; a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._state = "text"
        self._length = 0

    def feed(self, text: str) -> str:
        """Return what may be shown of `text`; carriage returns become line ends."""
        if self._state == "text" and not _NEEDS_WORK.search(text):
            return text
        return "".join(map(self._take, text))

    def _take(self, char: str) -> str:
        if self._state in {"text", "cr"}:
            return self._plain(char)
        self._length += 1
        if self._length > _LONGEST_SEQUENCE:  # no terminal reads that far; do not swallow a whole answer
            self._state = "text"
            return self._plain(char)
        if self._state == "escape":
            return self._after_escape(char)
        if self._state == "csi":
            return self._inside_csi(char)
        if char in "\x07\x9c":
            self._state = "text"
        elif char == "\x1b":
            self._state = "string-escape"
        elif self._state == "string-escape":
            self._state = "text" if char == "\\" else "string"
        return ""

    def _plain(self, char: str) -> str:
        after_return, self._state = self._state == "cr", "text"
        if char == "\n":
            return "" if after_return else "\n"
        if char == "\r":
            self._state = "cr"
            return "\n"
        if char == "\t" or (char >= " " and not "\x7f" <= char <= "\x9f" and char not in _INVISIBLE):
            return char
        if char == "\x1b":
            self._open("escape")
        elif char == "\x9b":
            self._open("csi")
        elif char in _C1_STRINGS:
            self._open("string")
        return ""

    def _after_escape(self, char: str) -> str:
        if char == "[":
            self._state = "csi"
        elif char in _STRING_OPENERS:
            self._state = "string"
        elif not " " <= char <= "/":  # intermediates go on; anything else ends the sequence
            self._state = "text"
            return self._plain(char) if char < " " else ""
        return ""

    def _inside_csi(self, char: str) -> str:
        if _CSI_END.match(char):
            self._state = "text"
        elif not " " <= char <= "?":  # not a sequence after all
            self._state = "text"
            return self._plain(char)
        return ""

    def _open(self, state: str) -> None:
        self._state = state
        self._length = 0


def safe(text: str) -> str:
    """Return a whole text as it may be shown."""
    return SafeText().feed(text)


def one_safe_line(text: str, limit: int = 200) -> str:
    """Return `text` as one line of at most `limit` characters."""
    return one_line(safe(text), limit)


def safe_json(text: str) -> str:
    """Return JSON text of the same value in which no character can move a terminal."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
