"""The blocks of a page from top to bottom, as ranges of it that leave nothing out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Beyond so many lines a page is a table of data or an attack; then only headings and fences are told apart.
MOST_LINES: Final = 20_000
MOST_HEADINGS: Final = 5_000
LONGEST_FRONT_MATTER: Final = 400

_BREAK: Final = re.compile(r"\r\n?|\n")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*\Z")
_CANDIDATE: Final = re.compile(r"(?:\A|(?<=\n)|(?<=\r)(?!\n)) {0,3}(?=[#`~])[^\r\n]*")
_MARKED: Final = re.compile(r"[`*_\[\]<>\\!&~]")


@dataclass(frozen=True, slots=True)
class Block:
    """`text[start:end]`, with the blank lines that follow it; `cuts` are places where a part of it begins."""

    start: int
    end: int
    kind: str
    level: int = 0
    text: str = ""
    cuts: tuple[int, ...] = ()


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    # What is within the lines of a block does not matter here.
    parser.core.ruler.disable(["inline", "text_join"])
    return parser


_PARSER: Final = _parser()
_INLINE: Final = MarkdownIt("commonmark")


def line_starts(text: str) -> list[int]:
    """Return where each line begins, the first at 0; a line ends as Markdown understands it."""
    return [0, *(found.end() for found in _BREAK.finditer(text))]


def front_matter_end(text: str, starts: list[int]) -> int:
    """Return the number of lines that the front matter takes at the top, 0 without any."""
    if not text.removeprefix("\ufeff").startswith("---") or _line(text, starts, 0).strip("\ufeff \t\r\n") != "---":
        return 0
    for number in range(1, min(len(starts), LONGEST_FRONT_MATTER)):
        if _line(text, starts, number).rstrip() in ("---", "..."):
            return number + 1
    return 0


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page; each begins where the one before it ends."""
    if not text:
        return []
    starts = line_starts(text)
    front = front_matter_end(text, starts)
    begun = [Block(0, 0, "front-matter")] if front else []
    if len(starts) > MOST_LINES:
        begun += _scanned(text, starts, front)
    elif front < len(starts):
        begun += _parsed(text[starts[front] :], [each - starts[front] for each in starts[front:]], starts[front])
    return list(_closed(begun, len(text)))


def _closed(begun: list[Block], end: int) -> Iterator[Block]:
    if not begun:
        yield Block(0, end, "paragraph")
        return
    for number, block in enumerate(begun):
        start = 0 if number == 0 else block.start
        following = begun[number + 1].start if number + 1 < len(begun) else end
        if following > start:
            yield Block(start, following, block.kind, block.level, block.text, block.cuts)


def _parsed(text: str, starts: list[int], offset: int) -> Iterator[Block]:
    tokens = _PARSER.parse(text)
    for number, token in enumerate(tokens):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        start = offset + starts[token.map[0]]
        kind = token.type.removesuffix("_open")
        if kind == "heading":
            yield Block(start, 0, kind, int(token.tag[1:]), _plain(tokens[number + 1].content))
        elif kind.endswith("_list"):
            yield Block(start, 0, kind, cuts=tuple(_items(tokens, number, starts, offset)))
        else:
            yield Block(start, 0, kind)


def _items(tokens: list[Token], opening: int, starts: list[int], offset: int) -> Iterator[int]:
    for token in tokens[opening + 1 :]:
        if token.level == 0:
            return
        if token.level == 1 and token.type == "list_item_open" and token.map is not None:
            yield offset + starts[token.map[0]]


def _scanned(text: str, starts: list[int], first: int) -> Iterator[Block]:
    if first >= len(starts):
        return
    yield Block(starts[first], 0, "paragraph")
    fence, headings = "", 0
    for found in _CANDIDATE.finditer(text, starts[first]):
        line = found[0]
        following = _start_after(starts, found.end())
        opened = _FENCE.match(line)
        if fence:
            mark = line.strip()
            if not (mark.startswith(fence) and not mark.strip(fence[0])):
                continue
            fence = ""
        elif opened:
            fence = opened[1]
            yield Block(found.start(), 0, "fence")
            continue
        elif (heading := _ATX.match(line)) and headings < MOST_HEADINGS:
            headings += 1
            yield Block(found.start(), 0, "heading", len(heading[1]), _plain(heading[2] or ""))
        else:
            continue
        for start in following:
            yield Block(start, 0, "paragraph")


def _line(text: str, starts: list[int], number: int) -> str:
    return text[starts[number] : starts[number + 1] if number + 1 < len(starts) else len(text)]


def _plain(source: str) -> str:
    """Return a heading as a reader sees it."""
    if not _MARKED.search(source):
        return " ".join(source.split())
    inline = _INLINE.parseInline(source)[0].children or []
    seen = "".join(" " if token.type in ("softbreak", "hardbreak") else token.content for token in inline)
    return " ".join(seen.split())


def _start_after(starts: list[int], offset: int) -> list[int]:
    number = bisect_right(starts, offset)
    return starts[number : number + 1]
