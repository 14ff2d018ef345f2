"""From what SearXNG answers to what a model may read: bounded, cleaned, each page once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_kit.text import one_line
from popagent_web.search import Found, FoundPage

MOST_PAGES: Final = 60
MOST_ANSWERS: Final = 3
MOST_SUGGESTIONS: Final = 5
MOST_ENGINES: Final = 12
LONGEST_TITLE: Final = 160
LONGEST_EXCERPT: Final = 600
LONGEST_URL: Final = 600
LONGEST_WORDS: Final = 120

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?=$|[T ])")
# What could pass for a mark of ours, or of a model's template.
_TAG: Final = re.compile(r"<(?=[/!|A-Za-z])")
# Some scripts and emoji are spelled with these two.
_JOINERS: Final = "\u200c\u200d"
# Variation selectors beyond the common ones: a text can be hidden in them.
_SELECTORS: Final = range(0xE0100, 0xE01F0)
_SPACES: Final = frozenset({"Zl", "Zp"})
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs"})
_IN_URLS: Final = {"<": "%3C", ">": "%3E", '"': "%22", "`": "%60", "\\": "%5C", "|": "%7C", "^": "%5E"}


class NotResultsError(ValueError):
    """It is no list of results; the message goes on after "It answered"."""


def results(body: bytes) -> Found:
    """Return what the answer holds; what of it is of another shape is left out.

    Raises:
        NotResultsError: It is not JSON, or no answer to a search.
    """
    try:
        said = json.loads(body)
    except MalformedJsonError as error:
        raise NotResultsError("what is not JSON") from error
    if not isinstance(said, dict) or not isinstance(said.get("results"), list):
        raise NotResultsError("JSON that holds no list of results")
    pages = [*_pages(said.get("infoboxes"), _infobox), *_pages(said["results"], _page)]
    return Found(
        pages=tuple(_each_once(pages)),
        answers=_texts(said.get("answers"), MOST_ANSWERS, LONGEST_EXCERPT),
        suggestions=_texts([*_list(said.get("corrections")), *_list(said.get("suggestions"))], MOST_SUGGESTIONS),
        silent=tuple(_silent(said.get("unresponsive_engines")))[:MOST_ENGINES],
    )


def plain(text: object, longest: int) -> str:
    """Return `text` as one line without what cannot be seen and without tags; nothing for what is no text."""
    if not isinstance(text, str):
        return ""
    # Far more than is shown, far less than a stranger may send.
    text = text[: longest * 8]
    if not (text.isascii() and text.isprintable()):
        text = "".join(_seen(char) for char in text)
    return one_line(_TAG.sub("‹", text), longest)


def safe_url(text: object) -> str | None:
    """Return a web address that may be shown, None for any other kind, with credentials, or too long."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_URL:
        return None
    if any(char.isspace() or _seen(char) != char for char in text):
        return None
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host or "@" in parts.netloc or "\\" in parts.netloc:
        return None
    return "".join(_IN_URLS.get(char, char) for char in text)


def _seen(char: str) -> str:
    category = unicodedata.category(char)
    if category in _SPACES or char in "\t\n\r\f\v":
        return " "
    if (category in _UNSEEN and char not in _JOINERS) or ord(char) in _SELECTORS:
        return ""
    return char


def _pages(items: object, made: Callable[[dict[str, Any]], FoundPage | None]) -> Iterator[FoundPage]:
    for item in _list(items)[:MOST_PAGES]:
        page = made(item) if isinstance(item, dict) else None
        if page is not None:
            yield page


def _page(item: dict[str, Any]) -> FoundPage | None:
    url = safe_url(item.get("url"))
    if url is None:
        return None
    day = _DAY.match(str(item.get("publishedDate") or ""))
    title = plain(item.get("title"), LONGEST_TITLE) or url
    return FoundPage(title, url, plain(item.get("content"), LONGEST_EXCERPT), day[0] if day else "")


def _infobox(item: dict[str, Any]) -> FoundPage | None:
    links = [item.get("id"), *(link.get("url") for link in _list(item.get("urls"))[:5] if isinstance(link, dict))]
    url = next((url for link in links if (url := safe_url(link)) is not None), None)
    excerpt = plain(item.get("content"), LONGEST_EXCERPT)
    if url is None or not excerpt:
        return None
    return FoundPage(plain(item.get("infobox"), LONGEST_TITLE) or url, url, excerpt)


def _each_once(pages: list[FoundPage]) -> list[FoundPage]:
    """Return the pages by their first mention, with the longest excerpt that any mention has."""
    found: dict[tuple[str, str, str], FoundPage] = {}
    for page in pages:
        parts = urlsplit(page.url)
        place = (parts.netloc.lower().removeprefix("www."), parts.path.rstrip("/"), parts.query)
        first = found.setdefault(place, page)
        if len(page.excerpt) > len(first.excerpt):
            found[place] = FoundPage(first.title, first.url, page.excerpt, first.day or page.day)
    return list(found.values())


def _texts(items: object, most: int, longest: int = LONGEST_WORDS) -> tuple[str, ...]:
    """Return texts that stand alone or, in newer versions, as `answer` of an object."""
    told = (item.get("answer") if isinstance(item, dict) else item for item in _list(items)[:MOST_PAGES])
    return tuple(text for each in told if (text := plain(each, longest)))[:most]


def _silent(items: object) -> Iterator[str]:
    for item in _list(items)[:MOST_PAGES]:
        words = [text for part in item[:2] if (text := plain(part, 60))] if isinstance(item, list) else []
        if words:
            yield words[0] if len(words) == 1 else f"{words[0]} ({words[1]})"


def _list(items: object) -> list[Any]:
    return items if isinstance(items, list) else []
