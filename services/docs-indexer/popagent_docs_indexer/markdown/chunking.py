"""A page cut into chunks: a section each where that is neither too long nor too short. No I/O."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from popagent_docs_indexer.markdown.blocks import Block, blocks_of, line_starts

# Characters. An embedding model of 256 tokens reads about so much.
LONGEST: Final = 1_500
# Neighbours that are together no longer than this are one chunk.
JOINED: Final = 700
# What no part of a split is shorter than, when there is a choice.
SHORTEST: Final = 300
# Letters that belong to the one before them.
_CLUSTER: Final = 16

_SENTENCE: Final = re.compile(r"[.!?…؟۔।]+[\"'”’)\]]*\s+|[。！？．]+[」』”）]*")
_BLANK: Final = re.compile(r"\s+")
_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page: where it stands, what it is called with those above it, and its place in a link."""

    at: int
    level: int
    text: str
    path: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text[start:end]` of a page; `above` are the headings that it stands below, `inside` those within it."""

    start: int
    end: int
    above: tuple[Heading, ...]
    inside: tuple[Heading, ...]

    @property
    def length(self) -> int:
        """Return its characters."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Cut:
    """A page in chunks, which follow one another without a gap, and its headings."""

    headings: tuple[Heading, ...]
    chunks: tuple[Chunk, ...]


def cut(text: str) -> Cut:
    """Return the chunks of a page."""
    headings: list[Heading] = []
    pieces: list[Chunk] = []
    taken: dict[str, int] = {}
    open_: tuple[Heading, ...] = ()
    starts = line_starts(text)
    for section in _sections(blocks_of(text)):
        first = section[0]
        inside: tuple[Heading, ...] = ()
        if first.kind == "heading":
            above = tuple(each for each in open_ if each.level < first.level)
            path = (*(each.text for each in above), first.text)
            heading = Heading(first.start, first.level, first.text, path, _anchor(first.text, taken))
            headings.append(heading)
            inside, open_ = (heading,), (*above, heading)
        for number, (start, end) in enumerate(_parts(text, section, starts)):
            within = inside if number == 0 else ()
            pieces.append(Chunk(start, end, open_[: len(open_) - len(within)], within))
    return Cut(tuple(headings), tuple(_joined(pieces)))


def _sections(blocks: list[Block]) -> Iterator[list[Block]]:
    section: list[Block] = []
    for block in blocks:
        if block.kind == "heading" and section:
            yield section
            section = []
        section.append(block)
    if section:
        yield section


def _parts(text: str, section: list[Block], starts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges that hold as many whole blocks as fit; a longer block is split, together with its heading."""
    start = end = section[0].start
    for number, block in enumerate(section):
        if block.end - start <= LONGEST:
            end = block.end
            continue
        only_heading = number == 1 and section[0].kind == "heading"
        fits_alone = block.end - block.start <= LONGEST
        if end > start and (fits_alone or not only_heading):
            yield start, end
            start = block.start
        if fits_alone:
            end = block.end
            continue
        *whole, last = _split(text, start, block, starts)
        yield from whole
        start, end = last
    if end > start:
        yield start, end


def _split(text: str, start: int, block: Block, starts: list[int]) -> Iterator[tuple[int, int]]:
    while block.end - start > LONGEST:
        place = _cut_before(text, start, start + LONGEST, block.cuts, starts)
        yield start, place
        start = place
    yield start, block.end


def _cut_before(text: str, start: int, limit: int, cuts: tuple[int, ...], starts: list[int]) -> int:
    """Return the best place in the second half or so of a range: an item, a line, a sentence, a word, a letter."""
    for places in (cuts, starts):
        place = places[bisect_right(places, limit) - 1] if places else 0
        if start + SHORTEST < place <= limit:
            return place
    for pattern in (_SENTENCE, _BLANK):
        place = max((found.end() for found in pattern.finditer(text, start, limit)), default=0)
        if place > start + SHORTEST:
            return _beside_break(text, place)
    place = limit
    while place > limit - _CLUSTER and _belongs_to_the_one_before(text[place - 1], text[place]):
        place -= 1
    return place if place > limit - _CLUSTER else limit


def _beside_break(text: str, place: int) -> int:
    return place - 1 if text[place - 1 : place + 1] == "\r\n" else place


def _belongs_to_the_one_before(before: str, letter: str) -> bool:
    return before == "\u200d" or letter in "\u200d\n" or unicodedata.category(letter) in ("Mn", "Me", "Mc", "Sk")


def _joined(pieces: list[Chunk]) -> Iterator[Chunk]:
    """Yield the pieces, short neighbours of one parent as one."""
    waiting: Chunk | None = None
    for piece in pieces:
        if waiting is None:
            waiting = piece
        elif waiting.length + piece.length <= JOINED and _are_kin(waiting, piece):
            waiting = replace(waiting, end=piece.end, inside=(*waiting.inside, *piece.inside))
        else:
            yield waiting
            waiting = piece
    if waiting is not None:
        yield waiting


def _are_kin(one: Chunk, other: Chunk) -> bool:
    """Tell whether what follows is more of the same section, a part of it, or its sibling."""
    parent = other.above
    return parent in (one.above, (*one.above, *one.inside[:1]))


def _anchor(heading: str, taken: dict[str, int]) -> str:
    plain = _NOT_IN_ANCHORS.sub("", heading.lower()).strip().replace(" ", "-")
    count = taken.get(plain, 0)
    taken[plain] = count + 1
    anchor = plain if count == 0 else f"{plain}-{count}"
    if count:
        taken.setdefault(anchor, 1)
    return anchor
