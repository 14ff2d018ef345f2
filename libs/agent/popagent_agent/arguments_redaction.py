"""Redaction of arguments as a model writes them: JSON, in which a letter may be spelled by its number."""

from __future__ import annotations

import re
from typing import Final

from popagent_telemetry import StreamRedactor

# An escaped backslash is consumed as a pair, so that what follows it is not taken for an escape.
_ESCAPE: Final = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|(/)|(.))", re.S)
LONGEST_ESCAPE: Final = 6


def plain_json(text: str) -> str:
    """Return the same JSON with its printable ASCII characters written as themselves."""
    return _ESCAPE.sub(_plain, text) if "\\" in text else text


class ArgumentsRedactor:
    """Redacts the arguments of one call as they grow; what it shows means what the redacted arguments mean."""

    def __init__(self) -> None:
        self._redactor = StreamRedactor()
        self._cut = ""

    def feed(self, fragment: str) -> str:
        """Return what can be shown now. The rest comes with the arguments as a whole."""
        text = self._cut + fragment
        end = _whole_escapes(text)
        self._cut = text[end:]
        return self._redactor.feed(plain_json(text[:end]))


def _plain(match: re.Match[str]) -> str:
    if match[2]:
        return "/"
    if match[1]:
        char = chr(int(match[1], 16))
        return match[0] if char in '"\\\x7f' else char
    return match[0]


def _whole_escapes(text: str) -> int:
    """Return where an escape begins that the next fragment goes on with, else the end."""
    at = text.rfind("\\", max(0, len(text) - LONGEST_ESCAPE))
    if at < 0:
        return len(text)
    begin = at
    while begin > 0 and text[begin - 1] == "\\":
        begin -= 1
    if (at - begin) % 2:  # the last backslash is escaped itself
        return len(text)
    rest = text[at + 1 :]
    return at if not rest or (rest[0] == "u" and len(rest) < LONGEST_ESCAPE - 1) else len(text)
