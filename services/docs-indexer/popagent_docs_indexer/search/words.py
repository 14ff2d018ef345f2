"""The terms of a text: what is looked up when somebody searches. No I/O.

A word is itself without case, accents and plural; a name such as getUserById or --no-verify is itself and its parts;
writing without blanks between its words is every two letters that follow one another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

LONGEST_TERM: Final = 64

# From a letter or digit to the last one before a blank or a mark that joins nothing. Then what C++ and C# end in.
# Vowels and accents that are written as marks belong to a word.
_MARK: Final = "".join(
    re.escape(chr(code)) for code in range(0x300, 0xFE30) if unicodedata.category(chr(code))[0] == "M"
)
_COMPOUND: Final = re.compile(rf"\w(?:[\w{_MARK}.\-:/'’]*[\w{_MARK}])?(?:\+\+|#(?!\w))?")
_RUN: Final = re.compile(rf"[^\W_](?:[^\W_]|[{_MARK}])*")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ACCENTS: Final = re.compile(r"[\u0300-\u036f]")
# Han, kana, Hangul; Thai, Lao, Khmer and Burmese.
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def terms_of(text: str) -> Iterator[str]:
    """Yield the terms of a text in order, each as often as it is there."""
    for term, _, _ in placed(text):
        yield term


def placed(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each term with the range of the text that it stands for."""
    for found in _COMPOUND.finditer(text):
        start, compound = found.start(), found[0]
        runs = list(_RUN.finditer(compound))
        for run in runs:
            yield from _of_run(run[0], start + run.start())
        if (len(runs) > 1 or (runs and runs[0].end() < len(compound))) and len(compound) <= LONGEST_TERM:
            yield fold(compound), start, found.end()


def _of_run(run: str, at: int) -> Iterator[tuple[str, int, int]]:
    if run.isascii():
        yield stem(run.lower()[:LONGEST_TERM]), at, at + len(run)
        if not run.islower() and not run.isdigit():
            parts = list(_CAMEL.finditer(run))
            if 1 < len(parts) <= LONGEST_TERM:
                for part in parts:
                    yield stem(part[0].lower()[:LONGEST_TERM]), at + part.start(), at + part.end()
        return
    place = 0
    for unspaced in _UNSPACED.finditer(run):
        if unspaced.start() > place:
            yield fold(run[place : unspaced.start()]), at + place, at + unspaced.start()
        letters, first = unspaced[0], at + unspaced.start()
        if len(letters) == 1:
            yield fold(letters), first, first + 1
        for number in range(len(letters) - 1):
            yield fold(letters[number : number + 2]), first + number, first + number + 2
        place = unspaced.end()
    if place < len(run):
        yield stem(fold(run[place:])), at + place, at + len(run)


def fold(text: str) -> str:
    """Return a word without case and accents, cut to 64 characters."""
    if text.isascii():
        return text.lower()[:LONGEST_TERM]
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", plain)[:LONGEST_TERM]


def stem(word: str) -> str:
    """Return an English plural as its singular, and any other word as it is."""
    if len(word) < 4 or not word.isascii() or word[-1] != "s" or word[-2] in "su":
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    return word[:-1]


_COMMON: Final = (
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its may me my"
    " no not of on or our should so than that the their them then there these they this those to was we were what when"
    " where which who why will with would you your"
    " der die das und ist ein eine wie was von mit zu im den dem nicht für auf"
)
# What says little in a question, as terms.
COMMON: Final = frozenset(term for word in _COMMON.split() for term in (word, stem(word)))
