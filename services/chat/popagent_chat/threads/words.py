"""Words as they are searched: the same whatever their case and accents are, and the place where one was found."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from popagent_kit.errors import InvalidInputError
from popagent_kit.text import excerpt
from popagent_proto.chat.sessions import EXCERPT_CHARACTERS

# Of a longer text the rest is not searched.
SEARCHED_CHARACTERS: Final = 100_000
# Shorter runs have no trigram, and an index would be read as a whole.
INDEXED_CHARACTERS: Final = 3
BEFORE_HIT: Final = 48
READ_ON: Final = 4 * EXCERPT_CHARACTERS
# As many as Unicode's own stream-safe text has; so many letters a composed character has at most.
MARKS_IN_A_ROW: Final = 30
COMPOSED_OF: Final = 4
# Characters that are looked up once: a bounded memory, whatever people write.
MOST_KNOWN: Final = 0x20000

_MARKS: Final = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")
_UNSEEN: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LONG_RUN: Final = re.compile(rb"[^\x00]{%d,}" % (MARKS_IN_A_ROW + 1))
_LIKE: Final = re.compile(r"([\\%_])")
# Letters with a stroke or a ligature, which Unicode does not take apart.
_LETTERS: Final = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"}


class _Codes(dict[int, str]):
    """Spells a character beyond ASCII as five capitals, which folded text has none of.

    Trigrams are made of what the database's locale takes for letters, which may be ASCII alone; so every character of
    every script counts, and a single one can be found by index. The first capital is one of A to M, the others of
    N to Z, so that a match never begins within a character.
    """

    def __missing__(self, code: int) -> str:
        if code < 128:
            return chr(code)
        rest, letters = code, ""
        for _ in range(4):
            rest, digit = divmod(rest, 13)
            letters = chr(78 + digit) + letters
        spelled = chr(65 + rest % 13) + letters
        if len(self) < MOST_KNOWN:
            self[code] = spelled
        return spelled


class _Bare(dict[int, str]):
    """What one character is without case, accents and typographic variants; nothing, or as many as 18 characters.

    Taken apart as far as Unicode can, so that nothing but the order of marks is left to do for a whole text.
    """

    def __missing__(self, code: int) -> str:
        bare = _MARKS.sub("", unicodedata.normalize("NFKD", chr(code))).casefold()
        bare = "".join([_LETTERS.get(letter, letter) for letter in bare])
        if len(self) < MOST_KNOWN:
            self[code] = bare
        return bare


_CODES: Final = _Codes()
_BARE: Final = _Bare()


def plain(text: str) -> str:
    """Return the text without case, accents and typographic variants; readable, and mostly of the same length.

    Both the text that is read and what is returned end at SEARCHED_CHARACTERS.
    """
    text = text[:SEARCHED_CHARACTERS]
    if text.isascii():
        return text.lower()
    # Composed, which a syllable of three letters becomes one by, only once there is an end to what is composed.
    bare = text.translate(_BARE)[: COMPOSED_OF * SEARCHED_CHARACTERS]
    for begin, end in reversed(_surplus(bare)):
        bare = bare[:begin] + bare[end:]
    return unicodedata.normalize("NFC", bare)[:SEARCHED_CHARACTERS]


def _surplus(bare: str) -> list[tuple[int, int]]:
    """Return where marks follow one another that no writing has so many of: to sort them takes their number squared."""
    # A class is below 256, and 0 is that of everything but a mark.
    classes = bytes(map(unicodedata.combining, bare))
    return [(run.start() + MARKS_IN_A_ROW, run.end()) for run in _LONG_RUN.finditer(classes)]


def folded(text: str) -> str:
    """Return what is stored and compared of a text: `plain`, spelled in ASCII."""
    bare = plain(text).replace("\x00", " ")
    return bare if bare.isascii() else bare.translate(_CODES)


def said(parts: list[dict[str, Any]]) -> str:
    """Return the visible text of a message."""
    return "\n\n".join(part["text"] for part in parts if part["type"] == "text" and part["text"])


@dataclass(frozen=True)
class Wanted:
    """The words of a search; `first` and `others` are patterns for `like`, the longest word first."""

    words: tuple[str, ...]
    first: str
    others: list[str]
    indexed: bool

    @classmethod
    def of(cls, query: str) -> Wanted:
        """Return the words of a query.

        Raises:
            InvalidInputError: It has none, but blanks, accents and marks.
        """
        words = tuple(dict.fromkeys(plain(query).split()))
        if not words:
            raise InvalidInputError("q has nothing that can be searched.", field="q")
        spelled = sorted((folded(word) for word in words), key=len, reverse=True)
        first, *others = map(_pattern, spelled)
        longest_run = max(map(len, re.findall("[a-zA-Z0-9]+", spelled[0])), default=0)
        return cls(words, first, others, longest_run >= INDEXED_CHARACTERS)

    def excerpt(self, text: str) -> str:
        """Return one line of plain text around the first of the words that the text holds."""
        bare = plain(text)
        found = next((place for word in self.words if (place := bare.find(word)) >= 0), 0)
        begin = max(0, _place_in(text, bare, found) - BEFORE_HIT)
        if begin:
            # Not in the middle of a word, where there are blanks between words.
            blank = text.find(" ", begin, begin + BEFORE_HIT // 2)
            begin = blank + 1 if blank >= 0 else begin
        line = " ".join(_UNSEEN.sub("", text[begin : begin + READ_ON]).split())
        return excerpt(f"…{line}" if begin else line, EXCERPT_CHARACTERS)


def _pattern(word: str) -> str:
    return "%" + _LIKE.sub(r"\\\1", word) + "%"


def _place_in(text: str, bare: str, place: int) -> int:
    """Return where in `text` the character is that became the one at `place` of its plain form."""
    if text.isascii():
        return place
    # Taken apart again, as many characters come before it as came of those before it in the text.
    before = len(unicodedata.normalize("NFD", bare[:place]))
    for begin, end in _surplus(text.translate(_BARE)):
        if begin > before:
            break
        before += end - begin
    ends = list(accumulate(map(len, map(_BARE.__getitem__, map(ord, text)))))
    return min(bisect_right(ends, before), len(text))
