"""What is asked of the web and what is found there, whoever searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from popagent_kit.errors import DependencyError

Category = Literal["general", "news", "it", "science"]
Since = Literal["day", "week", "month", "year"]


class SearchFailedError(DependencyError):
    """The web cannot be searched; the message says why and what to set."""

    code = "search_failed"


class NothingListensError(SearchFailedError):
    """Nobody answers where searches are sent."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question to search engines; `page` counts from 1, `since` is the age of what is found at most."""

    query: str
    category: Category = "general"
    since: Since | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class FoundPage:
    """One page in words of strangers: one line each, bounded, all of it to be seen. `day` is its date, if told."""

    title: str
    url: str
    excerpt: str
    day: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What engines answered, the best first; `silent` are engines that did not, each with the reason."""

    pages: tuple[FoundPage, ...] = ()
    answers: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class WebSearch(Protocol):
    """Searches the web for runs."""

    async def search(self, wanted: Wanted) -> Found:
        """Return what was found within seconds; raise SearchFailedError."""
